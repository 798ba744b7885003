#include "launch/card_findings.hpp"

#include "base/units.hpp"
#include "device/card_shares.hpp"

namespace vpp {

namespace {

std::string cards_text(size_t count, const std::string& first) {
    return counted_text(static_cast<int64_t>(count), "GPU") + " (" + first + ")";
}

/// How values go between ranks here.
std::string transport_text(const CardFacts& facts, const LaunchRequest& request, const HostFacts& host) {
    const size_t num_cards = facts.cards.size();
    if (request.ranks == 1) return "";
    if (is_placed_by_mpirun(request, host)) return "; values go by NCCL where every rank has a card of its own";
    const std::string ranks = counted_text(request.ranks, "rank");
    if (static_cast<size_t>(request.ranks) <= num_cards) return "; one for each of " + ranks + ": values go by NCCL";
    return "; " + ranks + " share " + (num_cards == 1 ? "it" : "them") +
           (facts.mpi_moves_card_memory ? ": values go from card to card, by MPI"
                                        : ": values go through the host's memory, by MPI");
}

}  // namespace

Finding judge_cards(const HostFacts& host, const CardFacts& facts, const LaunchRequest& request) {
    if (!facts.cards.empty()) {
        const Card& first = facts.cards.front();
        const std::string each = first.name + ", " + bytes_text(first.memory_bytes);
        return {FindingLevel::Ok, "GPU",
                cards_text(facts.cards.size(), each) + ", " + facts.versions + transport_text(facts, request, host),
                ""};
    }
    if (host.gpus.empty()) return {FindingLevel::Ok, "GPU", "none seen; none is needed, training runs on the CPU", ""};
    const std::string cards = cards_text(host.gpus.size(), host.gpus.front());
    if (!facts.has_parts) {
        return {FindingLevel::Note, "GPU", cards + " not used: this vpp is built without its CUDA parts",
                "scripts/build build-cuda -DVPP_CUDA=ON"};
    }
    return {FindingLevel::Note, "GPU", cards + " not used: CUDA gives this process none",
            "look at nvidia-smi and CUDA_VISIBLE_DEVICES; a driver for " + facts.versions + " is needed"};
}

Finding judge_card_memory(const std::vector<int64_t>& rank_bytes, const std::vector<Card>& cards) {
    const std::vector<CardShare> shares = card_shares(rank_bytes, cards);
    const size_t number = fullest_card(shares);
    const CardShare& fullest = shares[number];
    const std::string text = "card " + std::to_string(number) +
                             " is the fullest: " + counted_text(fullest.num_ranks, "rank") +
                             (fullest.num_ranks == 1 ? " keeps" : " keep") + " up to " +
                             bytes_text(fullest.kept_bytes) + " of " + bytes_text(fullest.memory_bytes) + " there";
    if (fullest.kept_bytes <= fullest.memory_bytes) return {FindingLevel::Ok, "memory", text, ""};
    // An upper bound: activations are counted as if nothing of them were let go before the end of a microbatch.
    return {FindingLevel::Note, "memory", text,
            "more pipeline.num_microbatches, pipeline.recompute.what = \"stage\", or more cards"};
}

}  // namespace vpp
