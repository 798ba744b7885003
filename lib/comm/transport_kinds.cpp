#include "comm/transport_kinds.hpp"

#include <map>

#include "base/error.hpp"
#include "comm/collective.hpp"
#include "comm/nccl.hpp"

namespace vpp {

namespace {

/// Why NCCL cannot connect ranks with these cards; empty when it can.
std::string obstacle(const std::vector<std::string>& cards) {
    std::map<std::string, size_t> owners;
    for (size_t rank = 0; rank < cards.size(); ++rank) {
        const std::string name = "rank " + std::to_string(rank);
        if (cards[rank].empty()) {
            return name + " computes on the CPU, and NCCL moves memory of cards; set mesh.transport = \"mpi\"";
        }
        const auto [owner, is_new] = owners.emplace(cards[rank], rank);
        if (is_new) continue;
        return "rank " + std::to_string(owner->second) + " and " + name + " use the same card (" + cards[rank] +
               "), and NCCL needs one for each rank; set mesh.transport = \"mpi\", start fewer ranks a host, or let "
               "them see more cards (CUDA_VISIBLE_DEVICES)";
    }
    return "";
}

}  // namespace

std::vector<std::string> transport_kinds() {
    std::vector<std::string> kinds{"auto", "mpi"};
    if (!nccl_version().empty()) kinds.emplace_back("nccl");
    return kinds;
}

std::string choose_transport(Transport& transport, const std::string& kind, const std::string& card) {
    if (kind == "mpi") return kind;
    std::vector<std::string> cards;
    for (const Bytes& bytes : all_gather(transport, to_bytes(card))) cards.push_back(to_string(bytes));
    const std::string reason = obstacle(cards);
    if (reason.empty()) return "nccl";
    if (kind == "nccl") throw Error(ErrorKind::Plan, reason);
    return "mpi";
}

}  // namespace vpp
