#pragma once
// What the graphics cards of a host mean for a job of so many ranks.
#include <cstdint>
#include <string>
#include <vector>

#include "device/cards.hpp"
#include "launch/findings.hpp"
#include "launch/mpirun_line.hpp"

namespace vpp {

/// What this build can do with cards, and what it sees.
struct CardFacts {
    bool has_parts = false;   ///< CUDA and NCCL are compiled in
    std::string versions;     ///< "CUDA 13.0, NCCL 2.28.9"
    std::vector<Card> cards;  ///< that this process may use
    bool mpi_moves_card_memory = false;
};

/// Cards that are there, whether they are used, and how values go between the ranks that share them or not.
Finding judge_cards(const HostFacts& host, const CardFacts& facts, const LaunchRequest& request);

/// Whether the ranks fit on their cards, which they take in turn (device/device.hpp).
/// `rank_bytes`: what each rank of this host keeps on its card at most.
/// Requires: cards.
Finding judge_card_memory(const std::vector<int64_t>& rank_bytes, const std::vector<Card>& cards);

}  // namespace vpp
