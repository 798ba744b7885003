#pragma once
// Placements: which rank holds which stage. S = P v stages.
//   loop (P = 3, v = 2)   rank 0: 0 3   rank 1: 1 4   rank 2: 2 5      s mod P; v = 1 is the linear placement
//   v    (P = 3, v = 2)   rank 0: 0 5   rank 1: 1 4   rank 2: 2 3      0..P-1, then P-1..0, and so on
#include <vector>

#include "schedule/size.hpp"

namespace vpp {

enum class Placement { Loop, V };

/// The rank of every stage.
/// Requires: a checked size.
/// Source:   loop: Megatron-LM, arXiv 2104.04473; v: Hanayo, arXiv 2308.15762, and ZB-V, arXiv 2401.10241.
std::vector<int> place_stages(Placement placement, const ScheduleSize& size);

}  // namespace vpp
