#include "comm/cores.hpp"

namespace vpp {

namespace {

std::string counted(int number, const std::string& word) {
    return std::to_string(number) + ' ' + word + (number == 1 ? "" : "s");
}

}  // namespace

std::string crowded_text(const HostLoad& load) {
    if (!load.is_crowded()) return "";
    const bool is_bound = load.usable_cores < load.existing_cores;
    return counted(load.ranks, "rank") + (load.threads > 1 ? " of " + counted(load.threads, "thread") : "") +
           (load.ranks == 1 ? " has " : " share ") + counted(load.usable_cores, "core") +
           (is_bound ? " of this host's " + std::to_string(load.existing_cores) +
                           "; try mpirun --bind-to none, which lets them use all"
                     : ": steps take longer than with a core for each" +
                           std::string(load.threads > 1 ? "; try mesh.threads = 1" : ""));
}

}  // namespace vpp
