#include "app/command.hpp"

#include <CLI/CLI.hpp>

namespace vpp {

CLI::App& add_command(CLI::App& parent, const std::string& name, const std::string& what, const std::string& example) {
    CLI::App& command = *parent.add_subcommand(name, what);
    command.footer("Example:\n  " + example);
    return command;
}

CLI::App& add_command_group(CLI::App& parent, const std::string& name, const std::string& what) {
    CLI::App& group = *parent.add_subcommand(name, what);
    group.require_subcommand(1);
    return group;
}

}  // namespace vpp
