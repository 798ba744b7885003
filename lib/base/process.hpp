#pragma once
// What the system knows of this process.
#include <cstdint>
#include <string>

namespace vpp {

/// The name of its host as the host has it, which may hold anything; empty when there is none.
std::string host_name();
/// The most memory that it had resident.
int64_t peak_resident_bytes();

}  // namespace vpp
