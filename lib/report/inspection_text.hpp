#pragma once
// An Inspection as a page for a terminal: at most TextStyle::width columns where names and numbers allow it. Colour
// repeats what the text says.
#include <string>

#include "program/inspection.hpp"
#include "report/text_table.hpp"

namespace vpp {

std::string inspection_text(const Inspection& inspection, const TextStyle& style);

/// The model as a strip in the order of execution: every stage as wide as its share of the time, with number and share.
std::string stage_strip(const Inspection& inspection, const TextStyle& style);

}  // namespace vpp
