#pragma once
// The line that starts the ranks of a job by Open MPI's mpirun (4.1), from facts about the host and what is asked for.
#include <optional>
#include <string>
#include <vector>

#include "launch/host_facts.hpp"

namespace vpp {

/// Where there is no mpirun.
inline constexpr const char* kMpirunRemedy = "install Open MPI, or put its folder into PATH";

struct LaunchRequest {
    int ranks = 1;
    int threads = 1;                   ///< of a rank: mesh.threads
    std::string host, hostfile;        ///< handed on to mpirun; empty = this host, or the allocation of a batch system
    std::string interface;             ///< between the hosts: a name or a subnet; empty: Open MPI tries all
    std::vector<std::string> command;  ///< the program and its arguments
    std::vector<std::string> forwarded = {};  ///< variables of this environment that other hosts are to have
};

/// Whether mpirun itself finds out what there is to start ranks on, as in a batch system's allocation.
bool is_placed_by_mpirun(const LaunchRequest& request, const HostFacts& host);

/// Whether mpirun would refuse so many ranks unless told otherwise: it counts cores, not hardware threads.
/// False where other hosts take part: they say themselves how many ranks they take.
bool is_oversubscribed(const LaunchRequest& request, const HostFacts& host);

/// The ranks that the hosts of --host take together, as mpirun counts them: "a:2,b" is 3. Empty where mpirun has to
/// look ("a:*").
std::optional<int> num_slots(const std::string& host);

/// Requires: ranks >= 1.
/// Throws:   Error{Mesh} when --host names too few slots: mpirun -q would end without a word.
std::vector<std::string> make_mpirun_line(const LaunchRequest& request, const HostFacts& host);

}  // namespace vpp
