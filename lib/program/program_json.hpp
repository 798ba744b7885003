#pragma once
// A Program as JSON text together with what was found out about it.
#include <string>

#include "program/program.hpp"

namespace vpp {

/// With one more member, whose value is JSON text too.
std::string to_json_text_with(const Program& program, const std::string& name, const std::string& value);

}  // namespace vpp
