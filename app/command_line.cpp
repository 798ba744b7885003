#include "app/command_line.hpp"

#include <CLI/CLI.hpp>

#include <iostream>

#include "base/error.hpp"
#include "base/suggest.hpp"
#include "engine/recompute_choice.hpp"

namespace vpp {

namespace {

void add_plan_options(CLI::App& command, PlanArguments& plan) {
    command.add_option("--config,plan", plan.config, "the plan (TOML)")->required()->type_name("FILE");
    command.add_option("--set", plan.overrides, "override a key of the plan: section.key=value; may be repeated")
        ->type_name("KEY=VALUE")
        ->take_all()
        ->allow_extra_args(false);
    command.add_option("--log-level", plan.log_level, "what goes to the log on stderr")
        ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "off"}))
        ->capture_default_str();
}

void add_eval_options(CLI::App& command, CommandLine& line) {
    EvaluationRequest& request = line.evaluation;
    CLI::Option* checkpoint =
        command.add_option("--checkpoint", request.checkpoint, "a checkpoint; default: the newest of run.dir")
            ->type_name("DIR");
    command.add_flag("--initial-weights", request.initial_weights, "the model file's own weights instead")
        ->excludes(checkpoint);
    command.add_option("--batches", request.batches, "how many batches; default: train.eval_batches, or all")
        ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
    command.add_flag("--drop-last", request.drop_last, "leave out samples at the end that fill no microbatch");
    CLI::Option* outputs =
        command.add_option("--outputs", request.outputs, "write the model's outputs there, a .npy file each")
            ->type_name("DIR");
    command.add_flag("--overwrite", request.overwrite, "replace outputs that are there already")->needs(outputs);
    command.add_flag("--json", line.json, "the result as JSON");
}

/// "random:20"
std::string take_cuts(const std::string& text, VerifyRequest& request) {
    const std::string prefix = "random:";
    const std::string number = text.starts_with(prefix) ? text.substr(prefix.size()) : "";
    const bool good = !number.empty() && number.size() <= 6 && number.find_first_not_of("0123456789") == number.npos;
    if (good) request.random_cuts = std::stoi(number);
    return request.random_cuts > 0 ? "" : "--cuts takes random:N with N from 1 to 999999, not " + printable(text);
}

/// A problem, or nothing. What the plan lists is not known yet.
std::string check_recompute(const std::string& text) {
    RecomputePlan any;
    any.modules = {"*"};
    try {
        recompute_from_text(text, any);
        return "";
    } catch (const Error& error) {
        return error.problems().front().message;
    }
}

void add_verify_options(CLI::App& command, CommandLine& line) {
    VerifyRequest& request = line.verify;
    const CLI::Range counts(1, 1 << 20);
    command.add_option("--steps", line.steps, "updates to compare")
        ->check(CLI::Range(1, 1 << 30))
        ->capture_default_str();
    command.add_flag("--all-schedules", request.all_schedules, "every schedule that trains");
    command.add_flag("--all-splits", request.all_splits, "every split method");
    command.add_option("--cuts", "random:N: N sets of random legal cuts for each number of stages")
        ->type_name("random:N")
        ->check([&request](const std::string& text) { return take_cuts(text, request); });
    command.add_option("--seed", request.seed, "of the random cuts")->capture_default_str();
    command.add_option("--microbatches", request.microbatches, "numbers of microbatches, as in 1,3,8")
        ->delimiter(',')
        ->check(counts);
    CLI::Option* stages = command.add_option("--stages", request.stages,
                                             "ranks of the pipeline, as in 1,2,4; the first ranks of the job run it");
    stages->delimiter(',')->check(counts);
    command.add_option("--replicas", request.replicas, "ranks of the DP axis, as in 1,2")
        ->delimiter(',')
        ->check(counts)
        ->needs(stages);
    command.add_flag_callback(
        "--zero1",
        [&request] {
            request.zero1 = {false, true};
        },
        "replicas with ZeRO-1 and without");
    command.add_option("--virtual", request.chunks, "stages of a rank, as in 1,2")->delimiter(',')->check(counts);
    command
        .add_option("--recompute", request.recompute,
                    "what is recomputed, as in none,stage,units:2,modules:blocks.*:head,stage:except_last")
        ->delimiter(',')
        ->type_name("WHAT")
        ->check(check_recompute);
    command.add_flag("--pairwise", request.pairwise,
                     "of all combinations only as many as it takes to have every pair of two values");
    command.add_flag("--json", line.json, "the result as JSON");
}

/// "train", "data order"
std::string command_words(const CLI::App& app) {
    std::string words;
    for (const CLI::App* command = &app; !command->get_subcommands().empty();) {
        command = command->get_subcommands().front();
        words += (words.empty() ? "" : " ") + command->get_name();
    }
    return words;
}

/// A mistyped command gets the nearest one.
std::string advice(const CLI::App& app, int argc, char** argv) {
    std::vector<std::string> names;
    for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
    const std::string word = argc > 1 ? argv[1] : "";
    if (word.empty() || word[0] == '-' || std::find(names.begin(), names.end(), word) != names.end()) return "";
    return "unknown command '" + printable(word) + "'" + did_you_mean(word, names);
}

}  // namespace

CommandLine parse_command_line(int argc, char** argv) {
    CommandLine line;
    CLI::App app("vpp trains TorchScript models by pipeline parallelism: the same bits as one device.", "vpp");
    app.set_version_flag("--version", "version");
    app.require_subcommand(1);

    CLI::App* train = app.add_subcommand("train", "train; start it with mpirun -np RANKS");
    add_plan_options(*train, line.plan);
    CLI::App* eval = app.add_subcommand("eval", "the loss of a checkpoint over the validation data; with mpirun");
    add_plan_options(*eval, line.plan);
    add_eval_options(*eval, line);
    CLI::App* inspect = app.add_subcommand("inspect", "show what would happen: stages, edges, memory, schedule");
    add_plan_options(*inspect, line.plan);
    inspect->add_option("--world", line.world, "number of ranks to show it for; default: what the plan names")
        ->check(CLI::Range(1, 1 << 20));
    inspect->add_flag("--json", line.json, "the whole program as JSON");
    CLI::App* verify = app.add_subcommand("verify", "prove that the pipeline has the bits of one device; with mpirun");
    add_plan_options(*verify, line.plan);
    add_verify_options(*verify, line);
    CLI::App* exported = app.add_subcommand("export", "write the weights of a checkpoint for other programs");
    add_plan_options(*exported, line.plan);
    add_export_options(*exported, line);
    add_checkpoint_commands(app, line);
    CLI::App* data = app.add_subcommand("data", "look at the data of a plan");
    data->require_subcommand(1);
    CLI::App* order = data->add_subcommand("order", "print the sample indices of every step, a line a step");
    add_plan_options(*order, line.plan);
    order->add_option("--steps", line.steps, "how many steps")->check(CLI::Range(1, 1 << 30))->capture_default_str();
    add_schedule_commands(app, line.schedule, line.plan);

    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForVersion&) {
        line.command = "version";
        return line;
    } catch (const CLI::Success& success) {
        app.exit(success);
        return line;
    } catch (const CLI::ParseError& error) {
        const std::string better = advice(app, argc, argv);
        throw Error(ErrorKind::CommandLine, (better.empty() ? std::string(error.what()) : better) + "; see vpp --help");
    }
    line.command = command_words(app);
    return line;
}

}  // namespace vpp
