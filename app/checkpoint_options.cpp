#include "app/checkpoint_options.hpp"

#include <CLI/CLI.hpp>

#include <memory>

#include "app/commands/commands.hpp"

namespace vpp {

namespace {

using Arguments = std::shared_ptr<CheckpointArguments>;

/// Of the group; its option for the place, and what runs it.
CLI::App& add_on_place(CLI::App& group, const std::string& name, const std::string& what, const std::string& example,
                       const Arguments& arguments, Chosen& chosen, int (*run)(const CheckpointArguments&)) {
    CLI::App& command = add_command(group, name, what, example);
    command
        .add_option("--config,where", arguments->plan.config, "a plan (TOML), a run folder, or a checkpoint's folder")
        ->required()
        ->type_name("PLAN|DIR");
    add_override_option(command, arguments->plan);
    command.callback([arguments, run, &chosen] { chosen = [arguments, run] { return run(*arguments); }; });
    return command;
}

void add_list(CLI::App& group, Chosen& chosen) {
    const auto given = std::make_shared<CheckpointArguments>();
    CLI::App& command = add_on_place(group, "list", "all of a run, newest first, and which one train goes on from",
                                     "vpp checkpoint list runs/quickstart", given, chosen, run_checkpoint_list);
    command.add_flag("--verify", given->verify, "read every byte; without it sizes and headers are looked at");
    command.add_flag("--json", given->json, "the list as JSON");
}

void add_verification(CLI::App& group, Chosen& chosen) {
    add_on_place(group, "verify", "compare every byte with the checksums; 65 when something is damaged",
                 "vpp checkpoint verify runs/quickstart", std::make_shared<CheckpointArguments>(), chosen,
                 run_checkpoint_verify);
}

void add_checkpoint_show(CLI::App& group, Chosen& chosen) {
    const auto given = std::make_shared<CheckpointArguments>();
    CLI::App& command =
        add_on_place(group, "show", "what one checkpoint says and holds; of a run, the newest",
                     "vpp checkpoint show runs/quickstart --tensors", given, chosen, run_checkpoint_show);
    CLI::Option* json = command.add_flag("--json", given->json, "all of it as JSON");
    command.add_flag("--tensors", given->tensors, "every tensor with type, shape and bytes");
    command.add_flag("--plan", given->print_plan, "the text of the plan that it was made with, and nothing else")
        ->excludes(json);
}

void add_prune(CLI::App& group, Chosen& chosen) {
    const auto given = std::make_shared<CheckpointArguments>();
    CLI::App& command =
        add_on_place(group, "prune", "delete old checkpoints of a run",
                     "vpp checkpoint prune runs/quickstart --keep 2 --dry-run", given, chosen, run_checkpoint_prune);
    command.add_option("--keep", given->keep, "how many of the newest that verify stay")
        ->required()
        ->check(CLI::Range(1, 1 << 30));
    command.add_option("--keep-every", given->keep_every, "those of every so many steps stay too")
        ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
    command.add_option("--keep-best", given->keep_best, "so many of the lowest validation loss stay too")
        ->check(CLI::Range(1, 1 << 30));
    command.add_flag("--dry-run", given->dry_run, "say what would go; delete nothing");
}

}  // namespace

void add_checkpoint(CLI::App& app, Chosen& chosen) {
    CLI::App& group = add_command_group(app, "checkpoint", "look at the checkpoints of a run, and delete old ones");
    add_list(group, chosen);
    add_verification(group, chosen);
    add_checkpoint_show(group, chosen);
    add_prune(group, chosen);
}

}  // namespace vpp
