#include "app/command_line.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>

#include "app/command_pages.hpp"
#include "app/commands/commands.hpp"
#include "base/error.hpp"
#include "base/suggest.hpp"

namespace vpp {

namespace {

/// All commands, in the order of the help.
constexpr void (*kCommands[])(CLI::App&, Chosen&) = {
    add_init,     add_run,     add_train,      add_eval,       add_verify,  add_inspect, add_profile,
    add_doctor,   add_export,  add_checkpoint, add_report,     add_compare, add_sweep,   add_data,
    add_schedule, add_explain, add_schema,     add_completion, add_man,
};

/// A mistyped command gets the nearest one.
std::string advice(const CLI::App& app, int argc, char** argv) {
    std::vector<std::string> names;
    for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
    const std::string word = argc > 1 ? argv[1] : "";
    if (word.empty() || word[0] == '-' || std::find(names.begin(), names.end(), word) != names.end()) return "";
    return "unknown command '" + printable(word) + "'" + did_you_mean(word, names);
}

/// "vpp checkpoint prune", or whatever the line came to.
const CLI::App& deepest_command(const CLI::App& app) {
    const std::vector<CLI::App*> parsed = app.get_subcommands();
    return parsed.empty() ? app : deepest_command(*parsed.back());
}

std::string full_name(const CLI::App& command) {
    const CLI::App* parent = command.get_parent();
    return (parent ? full_name(*parent) + ' ' : "") + command.get_name();
}

/// What is wrong, in the words of the help, where --config stands behind the commands without its name.
std::string problem_text(const CLI::App& command, const CLI::ParseError& error) {
    const std::string text = error.what();
    const CLI::Option* plan = command.get_option_no_throw("--config");
    if (!plan || text != "--config is required") return text;
    return plan->get_type_name() + " (or --config) is required";
}

std::string refusal(const CLI::App& app, const CLI::ParseError& error) {
    const CLI::App& command = deepest_command(app);
    return problem_text(command, error) + "; see " + full_name(command) + " --help";
}

/// What a shell makes of a variable that is not set.
std::string empty_problem(const std::string& value) {
    return value.empty() ? "the value is empty" : "";
}

/// The parser takes such a number for an octal one.
std::string zero_problem(const std::string& value) {
    const size_t digits = value.find_first_not_of("+-");
    const bool is_octal = digits != std::string::npos && value[digits] == '0' && value.size() > digits + 1;
    return is_octal && value.find_first_not_of("0123456789", digits) == std::string::npos
               ? value + " begins with a zero; leave that out"
               : "";
}

/// Before the checks that the options have themselves.
void check_values(CLI::App& app) {
    for (CLI::Option* option : app.get_options()) {
        const std::string type = option->get_type_name();
        const bool is_whole = type.starts_with("INT") || type.starts_with("UINT");
        if (is_whole) option->transform(CLI::Validator(zero_problem, ""));
        option->transform(CLI::Validator(empty_problem, ""));
    }
    for (CLI::App* command : app.get_subcommands({})) check_values(*command);
}

}  // namespace

std::vector<std::string> command_names() {
    CLI::App app;
    Chosen chosen;
    for (const auto add : kCommands) add(app, chosen);
    std::vector<std::string> names;
    for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
    return names;
}

PlannedCommand planned_command_of(const std::vector<std::string>& words) {
    CLI::App app("vpp", "vpp");
    Chosen chosen;
    for (const auto add : kCommands) add(app, chosen);
    std::vector<const char*> arguments{"vpp"};
    for (const std::string& word : words) arguments.push_back(word.c_str());
    try {
        app.parse(static_cast<int>(arguments.size()), arguments.data());
    } catch (const CLI::ParseError& error) {
        throw Error(ErrorKind::CommandLine, refusal(app, error));
    }
    const CLI::App& command = *app.get_subcommands().front();
    const CLI::Option* dry_run = command.get_option_no_throw("--dry-run");
    PlannedCommand planned;
    planned.arguments.config = command.get_option("--config")->as<std::string>();
    planned.arguments.overrides = command.get_option("--set")->results();
    planned.is_dry_run = dry_run && dry_run->count() > 0 && dry_run->as<bool>();
    return planned;
}

Chosen parse_command_line(int argc, char** argv) {
    CLI::App app("train TorchScript models by pipeline parallelism: the same bits as one device", "vpp");
    use_help_screens(app);
    app.set_version_flag("--version", "version", "name LibTorch, MPI and the compiler");
    app.require_subcommand(1);
    app.footer("Example:\n  mpirun -np 4 vpp train plan.toml");
    Chosen chosen = [] { return 0; };
    for (const auto add : kCommands) add(app, chosen);
    check_values(app);
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForVersion&) {
        return run_version;
    } catch (const CLI::Success& success) {
        app.exit(success);
        return [] { return 0; };
    } catch (const CLI::ParseError& error) {
        const std::string better = advice(app, argc, argv);
        if (better.empty()) throw Error(ErrorKind::CommandLine, refusal(app, error));
        throw Error(ErrorKind::CommandLine, better + (better.ends_with('?') ? " See" : "; see") + " vpp --help");
    }
    return chosen;
}

}  // namespace vpp
