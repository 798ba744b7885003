#pragma once
// Two clocks that were never set together, from what a few questions and answers between them show: how far they are
// apart, how sure that is, and a time of one on the other. All times are whole nanoseconds.
#include <cstdint>
#include <span>

namespace vpp {

/// This process's clock for all that is measured: it never goes back.
int64_t steady_nanoseconds();

/// A question and its answer: the asking clock before and behind it, the other clock at some moment between.
struct ClockPing {
    int64_t asked = 0;
    int64_t noted = 0;  ///< on the other clock
    int64_t answered = 0;
};

/// How far the other clock is ahead at a moment of the asking one: within offset +- error.
struct ClockOffset {
    int64_t at = 0;
    int64_t offset = 0;
    int64_t error = 0;
};

/// From the quickest answer: the other clock was read somewhere in its round trip, so half of that bounds the error.
/// Requires: at least one ping.
/// Source:   Cristian, "Probabilistic clock synchronization", 1989.
ClockOffset estimate_offset(std::span<const ClockPing> pings);

/// The other clock between two estimates: its offset goes in a straight line from one to the other, which a clock that
/// is fast or slow by a fixed rate does.
class ClockLine {
  public:
    /// Clocks that are one.
    ClockLine() = default;
    /// Requires: end is not before begin.
    ClockLine(const ClockOffset& begin, const ClockOffset& end);

    /// A time of the other clock on the asking one.
    int64_t to_asking(int64_t other) const;
    /// Bounds what to_asking is wrong by, between the two estimates.
    int64_t error() const;
    /// How much faster the other clock runs, as a part of 1.
    double drift() const;

  private:
    ClockOffset begin_, end_;
};

}  // namespace vpp
