#pragma once
// Drawings of schedules for papers and browsers.
#include <string>

#include "schedule/simulator.hpp"

namespace vpp {

/// An SVG of the simulated step: a row a rank, time to the right, a box an action with its microbatch where it fits;
/// the halves of an OVERLAP_F_B share the height of the row. The shade tells the stages of a rank apart.
/// `width`: of the whole drawing in pixels; 0: so that the shortest action has room for a number.
/// Requires: as simulate.
std::string draw_svg(const Schedule& lowered, const ScheduleCosts& costs = {}, double width = 0);

/// A style element with the classes of these drawings, for light and dark pages: `ground` and `idle` fill areas, `ink`
/// texts beside boxes, `label` texts on coloured boxes, `line` strokes.
std::string svg_style();

}  // namespace vpp
