#pragma once
// What a command of vpp is to the command line. One file in app/commands holds a command's arguments, its options and
// its body, and gives the function that adds it; the table of them is in app/command_line.cpp.
#include <array>
#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace vpp {

/// The command that was chosen, with its arguments; returns the exit code and throws what it cannot mend.
using Chosen = std::function<int()>;

/// Those that run on ranks, which `vpp run` starts.
inline constexpr std::array kCommandsOnRanks{"train", "eval", "verify"};

/// A command below `parent`: one sentence on what it does, and an example that ends its help.
CLI::App& add_command(CLI::App& parent, const std::string& name, const std::string& what, const std::string& example);

/// A name that only groups the commands below it: "checkpoint", "schedule".
CLI::App& add_command_group(CLI::App& parent, const std::string& name, const std::string& what);

}  // namespace vpp
