#include <algorithm>
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/commands/commands.hpp"
#include "app/job.hpp"
#include "base/error.hpp"
#include "engine/agreement.hpp"
#include "engine/verify_matrix.hpp"

namespace vpp {

namespace {

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
    return text;
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

void print_text(const Job& job, const MatrixResult& result, const std::optional<PairwiseLayouts>& pairwise) {
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
    for (const std::string& layout : result.different) std::cout << "NOT equal: " << layout << "\n";
    if (!result.is_equal()) {
        std::cout << "first difference: " << result.different.front() << ", " << result.first_cuts << ": "
                  << result.first_difference << "\n";
    }
    std::cout << "compared " << counts_text(result.by_kind) << " over " << result.steps << " steps of " << compared
              << (compared == 1 ? " layout" : " layouts") << " with " << result.num_references
              << (result.num_references == 1 ? " run" : " runs") << " on one device ("
              << numeric_environment(job.plan).text() << ")\n";
    if (result.is_equal()) {
        std::cout << "bitwise equal: all of it" << (many ? ", in every layout that is not refused" : "") << "\n";
    }
    std::cout.flush();
}

void print_json(const MatrixResult& result, const std::optional<PairwiseLayouts>& pairwise) {
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
                         {"references", result.num_references},
                         {"schedules", schedules},
                         {"difference", result.first_difference}};
    if (pairwise) {
        value["pairwise"] = {{"combinations", pairwise->num_combinations},
                             {"pairs", pairwise->num_pairs},
                             {"impossible", pairwise->num_impossible}};
    }
    std::cout << value.dump() << std::endl;
}

/// The model alone: its graph and sources serve every layout.
Plan one_stage(Plan plan) {
    const int64_t size = *plan.train.global_batch_size / (int64_t{*plan.pipeline.num_microbatches} * *plan.mesh.dp);
    plan.mesh.pp = plan.mesh.dp = plan.pipeline.num_stages = 1;
    plan.pipeline.virtual_chunks = 1;
    plan.pipeline.choose_virtual_chunks = false;
    plan.pipeline.memory_limit = {};
    plan.pipeline.split_method = "FLOPS";
    plan.pipeline.schedule_type = "1F1B";
    plan.train.global_batch_size = size * *plan.pipeline.num_microbatches;
    return plan;
}

void check_ranks(const Job& job, const std::vector<LayoutChoice>& choices) {
    int most = 1;
    for (const LayoutChoice& choice : choices) most = std::max(most, choice.num_ranks());
    if (most <= job.transport.size()) return;
    throw Error(ErrorKind::Mesh, "a layout needs " + std::to_string(most) + " ranks (got " +
                                     std::to_string(job.transport.size()) + "); start it with: mpirun -np " +
                                     std::to_string(most) + " vpp verify ...");
}

int verify_on(const Job& job, const VerifyRequest& request, bool json) {
    std::vector<LayoutChoice> choices = list_layouts(job.plan, request);
    check_ranks(job, choices);
    Datasets data{open_dataset(job.plan, Subset::Train), nullptr};
    const Plan base = request.is_matrix() ? one_stage(job.plan) : job.plan;
    Prepared prepared = agree_on_program(job.transport, base, data);
    guard_ranges(data, job.plan, prepared.program.training.graph);
    std::optional<PairwiseLayouts> pairwise;
    if (request.pairwise) {
        pairwise = choose_pairwise(job.plan, prepared.program, choices, request.seed);
        choices = pairwise->choices;
    }
    job.transport.set_deadline(kStepSeconds);
    LayoutVerifier verifier(prepared.sources, data, job.transport, request.steps);
    const auto say = [&](const LayoutChoice& choice, const std::string& outcome) {
        job.log->debug(choice.text() + ": " + outcome);
    };
    const MatrixResult result =
        verify_matrix(job.plan, prepared.program, choices, verifier, job.transport, request.steps, request.seed, say);
    if (!job.is_first()) return 0;
    json ? print_json(result, pairwise) : print_text(job, result, pairwise);
    if (result.is_equal()) return 0;
    throw Error(ErrorKind::VerifyDifference, "the pipeline does not have the bits of one device");
}

}  // namespace

int run_verify(const CommandLine& line) {
    return run_job(line, [&](const Job& job) {
        check_trains(job.plan);
        VerifyRequest request = line.verify;
        request.steps = line.steps;
        return verify_on(job, request, line.json);
    });
}

}  // namespace vpp
