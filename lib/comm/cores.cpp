#include "comm/cores.hpp"

#include "base/units.hpp"

namespace vpp {

std::string crowded_text(const HostLoad& load) {
    if (!load.is_crowded()) return "";
    const bool is_bound = load.usable_cores < load.existing_cores;
    const int threads = load.threads_of_a_rank();
    return counted_text(load.ranks, "rank") + (threads > 1 ? " of " + counted_text(threads, "thread") : "") +
           (load.ranks == 1 ? " has " : " share ") + counted_text(load.usable_cores, "core") +
           (is_bound ? " of this host's " + std::to_string(load.existing_cores) +
                           "; try mpirun --bind-to none, which lets them use all"
                     : ": steps take longer than with a core for each" +
                           std::string(load.threads > 1 ? "; try mesh.threads = 1" : ""));
}

}  // namespace vpp
