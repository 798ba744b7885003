#pragma once
// Seeds of random ops that are recorded (device/card_graph.hpp): each op reads its own from the card's memory, where
// another stands at every replay. Twins: card_seeds_cuda.cpp with VPP_CUDA=ON, card_seeds_none.cpp without.
#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace vpp {

class CardSeeds {
  public:
    virtual ~CardSeeds() = default;

    /// From now on the card's generator is for recording.
    virtual void begin_recording() = 0;
    /// Ops that are recorded behind this draw with a seed of their own, from the beginning of its numbers.
    /// Throws c10::Error when there are more than a thousand.
    virtual void next() = 0;
    /// The generator is as before. Requires: nothing; it may be called again.
    virtual void end_recording() = 0;

    /// Gives the card the seeds of the next replay, in the order of next(): the same number each time. Waits for the
    /// card where that is many replays behind.
    virtual void fill(const std::vector<uint64_t>& seeds) = 0;
};

/// Requires: a card that has been started, of this thread.
std::unique_ptr<CardSeeds> make_card_seeds(at::Device device);

}  // namespace vpp
