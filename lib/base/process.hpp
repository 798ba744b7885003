#pragma once
// What the system knows of this process.
#include <cstdint>
#include <string>

namespace vpp {

/// The name of its host as the host has it, which may hold anything; empty when there is none.
std::string host_name();
/// What no other running host has, in whatever container this process is; empty where the system does not say it.
std::string host_id();
/// The most memory that it had resident.
int64_t peak_resident_bytes();

}  // namespace vpp
