#pragma once
// The parser's commands as plain values, and help screens made of them.
#include "help/command_page.hpp"

namespace CLI {
class App;
}

namespace vpp {

/// The command with all below it. Hidden options and commands (of an empty group) are left out. A group of commands has
/// the first example below it.
CommandPage command_pages(CLI::App& app);

/// Help is printed as help_text makes it, for this command and all that are added to it later.
void use_help_screens(CLI::App& app);

}  // namespace vpp
