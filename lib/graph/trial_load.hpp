#pragma once
// The first load of a model file, in a child process with limits: a file that makes LibTorch crash, loop or take all
// memory costs the child. It takes milliseconds, since weights are left out and the child shares the parent's pages.
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "plan/plan.hpp"

namespace vpp {

/// What a child may use. MPI's start-up waits for it (comm/mpi_session.hpp: 120 s).
struct TrialLimits {
    unsigned cpu_seconds = 60;
    std::chrono::seconds wall{100};
    uint64_t memory_bytes = uint64_t{4} << 30;  ///< beside what the parent has and twice the file's size
};

struct TrialFile {
    std::string path;
    std::optional<SourcePosition> position;  ///< the key that names it
};

/// The files of a plan's model, each once.
std::vector<TrialFile> trial_files(const Plan& plan);

/// Loads every file in a child process of its own, which can neither write files nor open many, and ends.
/// Requires: no other threads run yet (MPI and LibTorch start theirs later).
/// Throws:   what Archive and load_module throw, of all files together; Error{BadData}: LibTorch crashes on it;
///           Error{Refused}: loading it does not end.
/// Calls:    once a host.
void trial_load(const std::vector<TrialFile>& files, const std::vector<std::string>& trusted,
                const TrialLimits& limits = {});

}  // namespace vpp
