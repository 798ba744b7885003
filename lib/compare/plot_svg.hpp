#pragma once
// A plot as an SVG file that stands alone, for light and dark pages. The end of each curve bears the letter of its run,
// and each has dashes of its own, so that it reads without colour too.
#include <string>

#include "compare/plot.hpp"

namespace vpp {

/// The whole file. Whatever names and titles hold stands in it as text.
std::string plot_svg(const Plot& plot);

}  // namespace vpp
