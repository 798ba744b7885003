#pragma once
// What a child process gives up before it reads what may be hostile.
#include <cstdint>
#include <optional>

namespace vpp {

struct Confinement {
    uint64_t memory_bytes = uint64_t{4} << 30;  ///< of address space
    std::optional<unsigned> cpu_seconds = {};   ///< SIGXCPU then; SIGKILL 5 s later
    unsigned most_files = 16;
};

/// This process can write no file, open few, and gets no new rights, also behind an exec; it leaves no core, it ends
/// with its parent, and signals that stop a job pass it by.
/// Requires: it is a child, behind a fork. Limits that are lower already stay.
void confine_process(const Confinement& confinement);

}  // namespace vpp
