#pragma once
// An Inspection as JSON for tools: its fields under their own names, the schedule left out (the program has it), the
// advice with the names of its rules.
#include <string>

#include "program/inspection.hpp"

namespace vpp {

std::string inspection_json(const Inspection& inspection);

}  // namespace vpp
