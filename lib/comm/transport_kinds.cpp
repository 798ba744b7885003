#include "comm/transport_kinds.hpp"

#include <map>
#include <utility>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "comm/collective.hpp"
#include "comm/nccl.hpp"
#include "plan/kind_rows.hpp"
#include "plan/transports.hpp"

namespace vpp {

namespace {

/// Why NCCL cannot connect ranks with these cards; empty when it can.
std::string obstacle(const std::vector<RankCard>& cards) {
    std::map<std::pair<std::string, std::string>, size_t> owners, neighbours;  // by host and card; by host and slot
    for (size_t rank = 0; rank < cards.size(); ++rank) {
        const std::string name = "rank " + std::to_string(rank);
        const RankCard& card = cards[rank];
        if (card.id.empty()) {
            return name + " computes on the CPU, and NCCL moves memory of cards; set mesh.transport = \"mpi\"";
        }
        if (card.is_waited_for) {
            return name + " waits for each kernel (CUDA_LAUNCH_BLOCKING=1), so that ranks which send by NCCL could " +
                   "wait for each other; set mesh.transport = \"mpi\", or leave the variable out";
        }
        const auto [owner, is_new] = owners.emplace(std::pair(card.host, card.id), rank);
        if (!is_new) {
            return "rank " + std::to_string(owner->second) + " and " + name + " use the same card (" + card.id +
                   "), and NCCL needs one for each rank; set mesh.transport = \"mpi\", start fewer ranks a host, or "
                   "let them see more cards (CUDA_VISIBLE_DEVICES)";
        }
        if (card.slot.empty()) continue;
        const auto [neighbour, is_alone] = neighbours.emplace(std::pair(card.host, card.slot), rank);
        if (is_alone) continue;
        return "rank " + std::to_string(neighbour->second) + " and " + name + " use parts of one card (" +
               cards[neighbour->second].id + " and " + card.id +
               "), and NCCL needs a card for each rank; set mesh.transport = \"mpi\"";
    }
    return "";
}

}  // namespace

std::vector<std::string> transport_kinds() {
    const bool has_links = !nccl_version().empty();
    return kinds_where(all_transports(),
                       [&](const TransportKind& row) { return has_links || row.links != UsesLinks::Yes; });
}

std::vector<std::string> overriding_nccl_variables() {
    return {
        "NCCL_COMM_BLOCKING",      "NCCL_COMM_ID",       "NCCL_LAUNCH_ORDER_IMPLICIT", "NCCL_MAX_CTAS",
        "NCCL_MIN_CTAS",           "NCCL_MIN_NCHANNELS", "NCCL_MIN_P2P_NCHANNELS",     "NCCL_NCHANNELS_PER_NET_PEER",
        "NCCL_P2P_USE_CUDA_MEMCPY"};
}

std::string choose_transport(Transport& transport, const std::string& kind, const RankCard& card) {
    const UsesLinks links = transport_named(kind).links;
    if (links == UsesLinks::No) return kind;
    ByteWriter own;
    own.put_text(card.id);
    own.put(card.is_waited_for);
    own.put_text(links == UsesLinks::Yes ? card.host : "");
    own.put_text(card.slot);
    std::vector<RankCard> cards;
    for (const Bytes& bytes : all_gather(transport, own.take())) {
        ByteReader reader(bytes);
        cards.push_back({.id = reader.get_text(),
                         .is_waited_for = reader.get<bool>(),
                         .host = reader.get_text(),
                         .slot = reader.get_text()});
    }
    const std::string reason = obstacle(cards);
    if (reason.empty()) return links == UsesLinks::Yes ? kind : "nccl";
    if (links == UsesLinks::Yes) throw Error(ErrorKind::Plan, reason);
    return "mpi";
}

}  // namespace vpp
