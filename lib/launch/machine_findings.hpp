#pragma once
// What facts about build and host mean for a job of so many ranks.
#include <optional>
#include <string>
#include <vector>

#include "launch/findings.hpp"
#include "launch/mpirun_line.hpp"

namespace vpp {

struct BuildFacts {
    std::string vpp, torch;
    std::string pinned_torch;       ///< the version that the tests of vpp run with
    std::string cpu_capability;     ///< of LibTorch's kernels here: "AVX512"
    std::string wanted_capability;  ///< ATEN_CPU_CAPABILITY, or empty
};

struct MpiFacts {
    std::string linked_text;              ///< what vpp is linked with, in MPI's words: "Open MPI v4.1.4, package: ..."
    std::string launcher;                 ///< what mpirun --version says; empty: there is no mpirun
    std::optional<bool> thread_multiple;  ///< as ompi_info says it; empty: it is not there
    std::optional<std::string> trouble;   ///< why mpirun starts no such ranks (launch/trial.hpp)
};

/// "4.1.4" of texts that name Open MPI; empty for others.
std::string open_mpi_version(std::string_view text);

/// MPI_THREAD_MULTIPLE in the words of `ompi_info --parsable`; empty when they say nothing of it.
std::optional<bool> thread_multiple_of(std::string_view ompi_info);

Finding judge_build(const BuildFacts& build);

/// MPI, then each of its quirks that this host has; `request` is the job, its command is not looked at.
std::vector<Finding> judge_mpi(const MpiFacts& mpi, const HostFacts& host, const LaunchRequest& request);

/// Ranks and threads against cores.
Finding judge_cores(const HostFacts& host, const LaunchRequest& request);

}  // namespace vpp
