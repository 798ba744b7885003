#pragma once
// The live line: how far a training is, redrawn in place (report/screen.hpp).
//
//     7 %  [==>                 ]  21/300  loss  2.9102   12.3 K tokens/s   3.2 GFLOP/s  bubble 21 %  ETA 1 min 20 s
#include <cstddef>
#include <string>

#include "report/event.hpp"

namespace vpp {

/// The line, at most `width` columns; in a narrow terminal the bar shrinks, then columns are left out. With `coloured`
/// the bar is made of coloured blanks (ANSI), which take no columns of their own.
/// Requires: width >= 1.
std::string live_line(const StepEvent& event, size_t width, bool coloured);

}  // namespace vpp
