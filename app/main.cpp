// Parse, dispatch, turn an Error into one line and an exit code.
#include <iostream>
#include <map>

#include "app/commands/commands.hpp"
#include "base/error.hpp"

namespace {

int dispatch(const vpp::CommandLine& line) {
    if (line.command.empty()) return 0;  // help was asked for and printed
    if (line.command == "version") return vpp::run_version();
    static const std::map<std::string, int (*)(const vpp::CommandLine&)> kCommands{
        {"train", vpp::run_train},
        {"eval", vpp::run_eval},
        {"verify", vpp::run_verify},
        {"inspect", vpp::run_inspect},
        {"export", vpp::run_export},
        {"checkpoint list", vpp::run_checkpoint_list},
        {"checkpoint verify", vpp::run_checkpoint_verify},
        {"checkpoint show", vpp::run_checkpoint_show},
        {"checkpoint prune", vpp::run_checkpoint_prune},
        {"data order", vpp::run_data_order},
        {"schedule list", vpp::run_schedule_list},
        {"schedule show", vpp::run_schedule_show},
        {"schedule simulate", vpp::run_schedule_simulate},
        {"schedule check", vpp::run_schedule_check},
        {"schedule convert", vpp::run_schedule_convert},
        {"schedule compare", vpp::run_schedule_compare},
        {"schedule search", vpp::run_schedule_search},
    };
    return kCommands.at(line.command)(line);
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return dispatch(vpp::parse_command_line(argc, argv));
    } catch (const vpp::Error& error) {
        std::cerr << "vpp: error: " << error.what() << std::endl;
        return vpp::exit_code(error.kind());
    } catch (const std::exception& error) {
        std::cerr << "vpp: error: this is a bug in vpp: " << error.what() << std::endl;
        return vpp::exit_code(vpp::ErrorKind::Bug);
    }
}
