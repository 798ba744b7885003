#pragma once
// Drawings of schedules for terminals, in ASCII.
//   1F1B: 2 ranks, 2 stages, 2 microbatches
//   0 |F0 F1 .. .. B0 -- .. B1 --
//   1 |.. F0 B0 -- F1 B1 -- .. ..
#include <string>

#include "schedule/schedule.hpp"
#include "schedule/simulator.hpp"

namespace vpp {

/// One row for each rank, time to the right, every line at most `width` columns; below it a legend with makespan, span,
/// bubbles and the largest numbers of activations in flight. A column is the cheapest computing action; with several
/// stages on a rank the labels carry the stage ("2F0"). What does not fit is cut off, marked by '>' and said. The
/// halves of an OVERLAP_F_B are drawn one behind the other. With `coloured`, F, B, I and W have a background each
/// (ANSI). Requires: as simulate; width below 40 counts as 40.
std::string draw_timeline(const Schedule& lowered, const ScheduleCosts& costs = {}, int width = 120,
                          bool coloured = false);

}  // namespace vpp
