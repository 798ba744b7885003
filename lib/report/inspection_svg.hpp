#pragma once
// An Inspection as one picture for papers and pages, light and dark: the model cut into stages with what travels
// between them, and below it the step as the simulator sees it.
#include <string>

#include "program/inspection.hpp"

namespace vpp {

std::string inspection_svg(const Inspection& inspection);

}  // namespace vpp
