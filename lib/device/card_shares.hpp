#pragma once
// Which ranks of a host share which card, and what they keep there. All here, for modules without LibTorch.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "device/cards.hpp"

namespace vpp {

struct CardShare {
    std::string name;  ///< of the card
    int64_t memory_bytes = 0;
    int num_ranks = 0;
    int64_t kept_bytes = 0;      ///< by all of them together, at most
    int64_t recorded_bytes = 0;  ///< with recordings of their ops; 0: none are made

    /// 1: full.
    double fullness() const {
        return static_cast<double>(kept_bytes) / static_cast<double>(std::max<int64_t>(1, memory_bytes));
    }
};

/// By card. Ranks take the cards in turn (device/device.hpp).
/// `rank_bytes`: what each rank of the host keeps on its card at most.
inline std::vector<CardShare> card_shares(const std::vector<int64_t>& rank_bytes, const std::vector<Card>& cards) {
    std::vector<CardShare> shares;
    for (const Card& card : cards) shares.push_back({card.name, card.memory_bytes});
    for (size_t rank = 0; rank < rank_bytes.size() && !cards.empty(); ++rank) {
        CardShare& share = shares[rank % cards.size()];
        ++share.num_ranks;
        share.kept_bytes += rank_bytes[rank];
    }
    return shares;
}

/// The number of the first one that nobody is fuller than. Requires: cards.
inline size_t fullest_card(const std::vector<CardShare>& shares) {
    const auto emptier = [](const CardShare& a, const CardShare& b) { return a.fullness() < b.fullness(); };
    return static_cast<size_t>(std::max_element(shares.begin(), shares.end(), emptier) - shares.begin());
}

}  // namespace vpp
