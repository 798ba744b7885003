#pragma once
// The help of a command as a screen: what it does, how it is called, arguments, options, commands below it, an example.
#include <string>

#include "help/command_page.hpp"

namespace vpp {

/// The screen; every line fits into kScreenColumns (base/wrapped_text.hpp) unless a single word does not.
std::string help_text(const CommandPage& command);

}  // namespace vpp
