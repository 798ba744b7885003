#pragma once
// How far the clocks of the ranks are from rank 0's: found out over the transport, while nothing else is under way.
#include <cstdint>
#include <functional>
#include <vector>

#include "base/clock_alignment.hpp"
#include "comm/transport.hpp"

namespace vpp {

/// Questions to each rank; the quickest answer counts, so a few that come late do no harm.
inline constexpr int kClockPings = 40;

/// Rank 0 asks every other rank, one after the other.
/// Calls: collective.
/// Gives: on rank 0 the offset of each rank's clock by rank, its own being 0; nothing elsewhere.
std::vector<ClockOffset> compare_clocks(Transport& transport,
                                        const std::function<int64_t()>& clock = steady_nanoseconds,
                                        int num_pings = kClockPings);

}  // namespace vpp
