#pragma once
// Foreign text of several lines, made fit for a terminal.
#include <string>

namespace vpp {

/// The text with its line ends; all other control bytes are replaced as by printable (base/error.hpp). A last line
/// without an end gets one.
std::string printable_lines(const std::string& text);

}  // namespace vpp
