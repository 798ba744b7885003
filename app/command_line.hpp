#pragma once
// The command line: all commands, parsed by CLI11, whose error codes and texts become vpp's.
#include "app/command.hpp"

namespace vpp {

/// What the arguments ask for. Help, when it is asked for, is printed here; what is returned then does nothing.
/// Throws Error{CommandLine} with one line that says what to type.
Chosen parse_command_line(int argc, char** argv);

}  // namespace vpp
