#include "app/checkpoint_options.hpp"

#include <CLI/CLI.hpp>

#include "app/command_line.hpp"

namespace vpp {

namespace {

CLI::App* add_command(CLI::App& checkpoint, const char* name, const char* what, CommandLine& line) {
    CLI::App* command = checkpoint.add_subcommand(name, what);
    command
        ->add_option("--config,where", line.checkpoint.where, "a plan (TOML), a run folder, or a checkpoint's folder")
        ->required()
        ->type_name("PLAN|DIR");
    command->add_option("--set", line.plan.overrides, "override a key of the plan: section.key=value; may be repeated")
        ->type_name("KEY=VALUE")
        ->take_all()
        ->allow_extra_args(false);
    return command;
}

}  // namespace

void add_checkpoint_commands(CLI::App& app, CommandLine& line) {
    CheckpointArguments& given = line.checkpoint;
    CLI::App* checkpoint = app.add_subcommand("checkpoint", "look at the checkpoints of a run, and delete old ones");
    checkpoint->require_subcommand(1);

    CLI::App* list =
        add_command(*checkpoint, "list", "all of a run, newest first, and which one train goes on from", line);
    list->add_flag("--verify", given.verify, "read every byte; without it sizes and headers are looked at");
    list->add_flag("--json", given.json, "the list as JSON");

    add_command(*checkpoint, "verify", "compare every byte with the checksums; 65 when something is damaged", line);

    CLI::App* show = add_command(*checkpoint, "show", "what one checkpoint says and holds; of a run, the newest", line);
    CLI::Option* json = show->add_flag("--json", given.json, "all of it as JSON");
    show->add_flag("--tensors", given.tensors, "every tensor with type, shape and bytes");
    show->add_flag("--plan", given.plan, "the text of the plan that it was made with, and nothing else")
        ->excludes(json);

    CLI::App* prune = add_command(*checkpoint, "prune", "delete old checkpoints of a run", line);
    prune->add_option("--keep", given.keep, "how many of the newest that verify stay")
        ->required()
        ->check(CLI::Range(1, 1 << 30));
    prune->add_option("--keep-every", given.keep_every, "those of every so many steps stay too")
        ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
    prune->add_option("--keep-best", given.keep_best, "so many of the lowest validation loss stay too")
        ->check(CLI::Range(1, 1 << 30));
    prune->add_flag("--dry-run", given.dry_run, "say what would go; delete nothing");
}

void add_export_options(CLI::App& command, CommandLine& line) {
    ExportRequest& request = line.export_request;
    CLI::Option* checkpoint =
        command.add_option("--checkpoint", request.checkpoint, "a checkpoint; default: the newest of run.dir")
            ->type_name("DIR");
    command
        .add_flag("--initial-weights", request.initial_weights,
                  "what a training would begin with: the weights of the model file, or of model.init_from")
        ->excludes(checkpoint);
    command.add_option("--safetensors", request.safetensors, "write parameters and buffers to this file")
        ->type_name("FILE");
    command
        .add_option("--torchscript", request.torchscript,
                    "write the model with these weights to this file, as torch.jit.load reads it; a folder, where the "
                    "plan's stages have files of their own")
        ->type_name("FILE|DIR");
    command.add_flag("--overwrite", request.overwrite, "replace files that are there already");
    command.add_flag("--json", line.json, "what was written as JSON");
    command.callback([&request] {
        if (request.safetensors.empty() && request.torchscript.empty()) {
            throw CLI::ValidationError("vpp export writes --safetensors FILE, --torchscript FILE, or both");
        }
    });
}

}  // namespace vpp
