#pragma once
// Whether the ranks of a host have a core for each of their threads, and what to type when they have not.
#include <string>

namespace vpp {

/// What stands on one host.
struct HostLoad {
    int ranks = 1;
    int threads = 1;         ///< intra-op threads of a rank (mesh.threads)
    int usable_cores = 1;    ///< that the ranks may use together: mpirun may have bound them
    int existing_cores = 1;  ///< of the host
    bool on_cards = false;   ///< autograd has a thread of its own for a card

    int threads_of_a_rank() const { return threads + (on_cards ? 1 : 0); }
    bool is_crowded() const { return ranks * threads_of_a_rank() > usable_cores; }
};

/// One sentence with a remedy; empty when every thread has a core.
std::string crowded_text(const HostLoad& load);

}  // namespace vpp
