#pragma once
// Drawings of schedules for papers and browsers.
#include <string>

#include "schedule/simulator.hpp"

namespace vpp {

/// An SVG of the simulated step: a row a rank, time to the right, a box an action with its microbatch where it fits;
/// the halves of an OVERLAP_F_B share the height of the row. The shade tells the stages of a rank apart.
/// Requires: as simulate.
std::string draw_svg(const Schedule& lowered, const ScheduleCosts& costs = {});

}  // namespace vpp
