#pragma once
// One colour for each stage, the same in the terminal and in drawings: light backgrounds for black text, which are told
// apart on dark and light grounds. They repeat; a label always stands beside them.
#include <string>

namespace vpp {

/// "#8ecae6"
std::string stage_colour(int stage);
/// The text in the terminal on the stage's colour (ANSI, 256 colours).
std::string painted(const std::string& text, int stage);

}  // namespace vpp
