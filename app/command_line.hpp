#pragma once
// The command line: all commands, parsed by CLI11, whose error codes and texts become vpp's.
#include <string>
#include <vector>

#include "app/command.hpp"
#include "app/plan_arguments.hpp"

namespace vpp {

/// What the arguments ask for. Help, when it is asked for, is printed here; what is returned then does nothing.
/// Throws Error{CommandLine} with one line that says what to type.
Chosen parse_command_line(int argc, char** argv);

/// "train", "eval", ..
std::vector<std::string> command_names();

/// What the words of a command on a plan say, {"train", "plan.toml", "--set", ..}.
struct PlannedCommand {
    PlanArguments arguments;  ///< plan and overrides
    bool is_dry_run = false;
};

/// The words are checked as that command checks them. Throws Error{CommandLine}.
PlannedCommand planned_command_of(const std::vector<std::string>& words);

}  // namespace vpp
