#include <CLI/CLI.hpp>

#include <algorithm>
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/commands/commands.hpp"
#include "app/job.hpp"
#include "base/error.hpp"
#include "base/json_text.hpp"
#include "engine/agreement.hpp"
#include "engine/recompute_choice.hpp"
#include "engine/verify_matrix.hpp"
#include "engine/verify_request.hpp"
#include "plan/batch_size.hpp"
#include "plan/rules.hpp"
#include "plan/training_rules.hpp"

namespace vpp {

namespace {

struct VerifyArguments {
    PlanArguments plan;
    VerifyRequest request;
    int64_t steps = 10;
    bool json = false;
};

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

void add_verify_options(CLI::App& command, VerifyArguments& arguments) {
    VerifyRequest& request = arguments.request;
    const CLI::Range counts(1, 1 << 20);
    command.add_option("--steps", arguments.steps, "updates to compare")
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
    command.add_flag("--json", arguments.json, "the result as JSON");
}

// Of one step on one device, which all other ranks wait for.
constexpr double kStepSeconds = 600;

/// "4 losses, 12 gradients"
std::string counts_text(const std::map<std::string, int64_t>& by_kind) {
    static const std::vector<std::pair<std::string, std::string>> kWords{
        {"loss", "losses"},          {"gradient", "gradients"}, {"norm", "norms"},
        {"parameter", "parameters"}, {"buffer", "buffers"},     {"optimizer", "optimizer tensors"}};
    std::string text;
    for (const auto& [kind, words] : kWords) {
        const auto found = by_kind.find(kind);
        const int64_t count = found == by_kind.end() ? 0 : found->second;
        text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + words;
    }
    const auto evaluated = by_kind.find("evaluation");
    return text +
           (evaluated == by_kind.end() ? "" : ", " + std::to_string(evaluated->second) + " figures of evaluations");
}

void print_table(const MatrixResult& result) {
    size_t width = 8;
    for (const auto& [name, tally] : result.by_schedule) width = std::max(width, name.size());
    std::cout << std::left << std::setw(static_cast<int>(width)) << "schedule" << std::right
              << "   equal  different  refused\n";
    for (const auto& [name, tally] : result.by_schedule) {
        std::cout << std::left << std::setw(static_cast<int>(width)) << name << std::right << std::setw(8)
                  << tally.equal << std::setw(11) << tally.different << std::setw(9) << tally.refused << "\n";
    }
}

void print_verify_text(const Job& job, const MatrixResult& result, const std::optional<PairwiseLayouts>& pairwise) {
    const int compared = result.all.equal + result.all.different;
    const bool many = compared + result.all.refused > 1;
    if (many) print_table(result);
    if (pairwise) {
        std::cout << "pairwise: " << compared << " of " << pairwise->num_combinations << " combinations have all "
                  << pairwise->num_pairs << " pairs of values that are allowed; " << pairwise->num_impossible
                  << " more are in refused combinations only\n";
    }
    for (const auto& [reason, layouts] : result.refused) {
        std::cout << "refused " << layouts.size() << " (" << layouts.front()
                  << (layouts.size() > 1 ? " and others" : "") << "): " << reason << "\n";
    }
    if (!result.through_host.empty()) {
        std::cout << "through the host " << result.through_host.size() << " (" << result.through_host.front()
                  << (result.through_host.size() > 1 ? " and others" : "")
                  << "): in each step a rank took memory of its card, so nothing went from card to card; more --steps "
                     "prove that too\n";
    }
    for (const std::string& layout : result.different) std::cout << "NOT equal: " << layout << "\n";
    if (!result.is_equal()) {
        std::cout << "first difference: " << result.different.front() << ", " << result.first_cuts << ": "
                  << result.first_difference << "\n";
    }
    std::cout << "compared " << counts_text(result.by_kind) << " over " << result.steps << " steps of " << compared
              << (compared == 1 ? " layout" : " layouts") << " with " << result.num_references
              << (result.num_references == 1 ? " run" : " runs") << " on one device ("
              << numeric_environment(job.plan, job.device).text() << ")\n";
    if (const int64_t skipped = result.num_skipped(); skipped > 0) {
        std::cout
            << "skipped " << skipped << " of " << result.steps * compared
            << " steps: they made no update (an overflow in fp16, train.on_nonfinite, train.on_spike), so none was "
               "compared in them\n";
    }
    if (result.is_equal()) {
        std::cout << "bitwise equal: all of it" << (many ? ", in every layout that is not refused" : "") << "\n";
    }
    std::cout.flush();
}

void print_verify_json(const MatrixResult& result, const std::optional<PairwiseLayouts>& pairwise) {
    int64_t values = 0;
    for (const auto& [kind, count] : result.by_kind) values += count;
    nlohmann::json schedules = nlohmann::json::object();
    for (const auto& [name, tally] : result.by_schedule) {
        schedules[name] = {{"equal", tally.equal}, {"different", tally.different}, {"refused", tally.refused}};
    }
    nlohmann::json value{{"equal", result.is_equal()},
                         {"steps", result.steps},
                         {"values", values},
                         {"values_by_kind", result.by_kind},
                         {"layouts", result.all.equal + result.all.different},
                         {"layouts_different", result.different},
                         {"layouts_refused", result.refused},
                         {"layouts_through_host", result.through_host},
                         {"steps_skipped", result.num_skipped()},
                         {"references", result.num_references},
                         {"schedules", schedules},
                         {"difference", result.first_difference}};
    if (pairwise) {
        value["pairwise"] = {{"combinations", pairwise->num_combinations},
                             {"pairs", pairwise->num_pairs},
                             {"impossible", pairwise->num_impossible}};
    }
    std::cout << json_text(value) << std::endl;
}

/// The model alone: its graph and sources serve every layout.
Plan one_stage(Plan plan) {
    const int64_t size = samples_of_microbatch(plan);
    plan.mesh.pp = plan.mesh.dp = plan.pipeline.num_stages = 1;
    plan.pipeline.virtual_chunks = 1;
    plan.pipeline.choose_virtual_chunks = false;
    plan.pipeline.memory_limit = {};
    plan.pipeline.split_method = "FLOPS";
    plan.pipeline.schedule_type = "1F1B";
    plan.train.global_batch_size = size * parts_of_batch(plan);
    return plan;
}

void check_ranks(const Job& job, const std::vector<LayoutChoice>& choices) {
    int most = 1;
    for (const LayoutChoice& choice : choices) most = std::max(most, choice.num_ranks());
    if (most <= job.transport.size()) return;
    const std::string number = std::to_string(most);
    throw Error(ErrorKind::Mesh, "a layout needs " + number + " ranks (got " + std::to_string(job.transport.size()) +
                                     "); start it with: vpp run -n " + number + " verify ... (or mpirun -np " + number +
                                     " vpp verify ...)");
}

int verify_on(const Job& job, const VerifyRequest& request, bool json) {
    Plan plan = job.plan;
    plan.train.eval_batches = 1;  // behind the last step of each run
    std::vector<LayoutChoice> choices = list_layouts(plan, request);
    check_ranks(job, choices);
    Datasets data = open_datasets(plan, job.first_log());
    const Plan base = request.is_matrix() ? one_stage(plan) : plan;
    Prepared prepared = agree_on_program(job.transport, base, data, job.device);
    guard_ranges(data, prepared.program.training.graph);
    std::optional<PairwiseLayouts> pairwise;
    if (request.pairwise) {
        pairwise = choose_pairwise(plan, prepared.program, choices, request.seed);
        choices = pairwise->choices;
    }
    job.transport.set_deadline(kStepSeconds);
    LayoutVerifier verifier(prepared.sources, data, job.transport, request.steps);
    const auto say = [&](const LayoutChoice& choice, const std::string& outcome) {
        job.log->debug(choice.text() + ": " + outcome);
    };
    const MatrixResult result =
        verify_matrix(plan, prepared.program, choices, verifier, job.transport, request.steps, request.seed, say);
    if (!job.is_first()) return 0;
    json ? print_verify_json(result, pairwise) : print_verify_text(job, result, pairwise);
    if (!result.is_equal()) {
        throw Error(ErrorKind::VerifyDifference, "the pipeline does not have the bits of one device");
    }
    const int64_t num_steps = result.steps * result.all.equal;
    if (num_steps == 0 || result.num_skipped() < num_steps) return 0;
    throw Error(ErrorKind::NotFinite,
                "no step made an update, so none was compared; take more --steps, or a lower train.loss_scale");
}

int run_verify(const VerifyArguments& arguments) {
    VerifyRequest request = arguments.request;
    request.steps = arguments.steps;
    const auto has_other_ranks = [&request](const Plan& plan) {
        return !request.stages.empty() || (plan.pipeline.is_by_hand() && !request.chunks.empty());
    };
    const auto make_room = [&](Plan& plan) {  // what the plan itself names is not asked of the job
        if (has_other_ranks(plan)) plan.mesh.pp = plan.pipeline.num_stages = std::nullopt;
        if (!request.replicas.empty()) plan.mesh.dp = 1;
    };
    // Stages by hand fit one number of ranks, whatever the layouts have.
    const auto world_of = [&](const Plan& plan, int started) {
        const bool is_by_hand = plan.pipeline.is_by_hand() && has_other_ranks(plan);
        return is_by_hand ? natural_world(plan) : started;
    };
    const auto body = [&](const Job& job) {
        check_trains(job.plan);
        return verify_on(job, request, arguments.json);
    };
    return run_job(arguments.plan, body, make_room, world_of);
}

}  // namespace

void add_verify(CLI::App& app, Chosen& chosen) {
    const auto arguments = std::make_shared<VerifyArguments>();
    CLI::App& command = add_command(app, "verify", "prove that the pipeline has the bits of one device; with mpirun",
                                    "mpirun -np 4 vpp verify plan.toml --all-schedules --stages 1,2,4");
    add_plan_options(command, arguments->plan);
    add_verify_options(command, *arguments);
    command.callback([arguments, &chosen] { chosen = [arguments] { return run_verify(*arguments); }; });
}

}  // namespace vpp
