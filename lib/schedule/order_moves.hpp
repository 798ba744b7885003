#pragma once
// Random numbers and proposals of order search: whole numbers only, so the same on every machine.
#include <cstdint>

#include "base/random.hpp"
#include "schedule/incremental_simulator.hpp"

namespace vpp {

/// A stream of random numbers; a pure function of its seed.
class Draws {
  public:
    explicit Draws(uint64_t seed) : key_(mix64(seed)) {}

    uint64_t next() { return key_ = mix64(key_); }
    /// 0 .. bound-1. Requires: 1 <= bound < 2^31.
    int below(int bound) { return static_cast<int>(((next() >> 32) * static_cast<uint64_t>(bound)) >> 32); }
    /// About -log2 of a number evenly drawn from (0, 1], in 1/256: 0 .. 64 x 256, with mean 1.44 x 256. (Between powers
    /// of two the logarithm is a straight line here.)
    int64_t exponential();

  private:
    uint64_t key_;
};

/// A random change of one rank's order: one action or a block of up to four, shifted by a short way in most cases.
/// Requires: a rank with two actions.
OrderMove propose_move(const NodeLists& lists, Draws& draws);

}  // namespace vpp
