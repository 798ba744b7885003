// vpp schedule search: AUTO.
#include <iostream>
#include <nlohmann/json.hpp>

#include "app/commands/inspect_search.hpp"
#include "app/commands/schedule_choice.hpp"
#include "app/commands/schedule_figures.hpp"
#include "app/planned_program.hpp"
#include "app/schedule_options.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/json_text.hpp"
#include "plan/batch_size.hpp"
#include "program/searched_schedule.hpp"
#include "schedule/checker.hpp"
#include "schedule/custom.hpp"
#include "schedule/edges.hpp"
#include "schedule/lowering.hpp"
#include "schedule/search.hpp"

namespace vpp {

namespace {

/// What a search found, with its transfers.
struct Found {
    SearchRecord record;
    Schedule compute;
    Schedule lowered;
    ScheduleCosts costs;
};

/// The stages per rank to choose from: the given number, else the plan's, else all up to kMostSearchedPerRank that the
/// costs can be for.
std::vector<int> candidates(const ScheduleArguments& given, const std::optional<Plan>& plan, const ScheduleSize& size) {
    if (given.per_rank) return {*given.per_rank};
    if (plan && !plan->pipeline.choose_virtual_chunks) return {plan->pipeline.virtual_chunks};
    std::vector<int> fitting;
    for (int per_rank = 1; per_rank <= kMostSearchedPerRank; ++per_rank) {
        try {
            parse_costs(given.costs, {size.num_ranks, per_rank, size.num_microbatches});
            fitting.push_back(per_rank);
        } catch (const Error&) {
            continue;  // costs by stage fit one number of stages
        }
    }
    if (fitting.empty()) parse_costs(given.costs, size);
    return fitting;
}

SearchRequest search_request(const ScheduleArguments& given, const std::optional<Plan>& plan) {
    const ScheduleSize size = ranks_and_microbatches(given, plan);
    const SearchPlan usual = plan ? plan->pipeline.search : SearchPlan{};
    SearchRequest request;
    request.num_ranks = size.num_ranks;
    request.num_microbatches = size.num_microbatches;
    request.stages_per_rank = candidates(given, plan, size);
    request.costs = [text = given.costs](const ScheduleSize& one) { return parse_costs(text, one); };
    request.memory_limit = activations_limit(given, plan);
    const bool by_span = given.objective.value_or(usual.objective) == "span";
    request.objective = by_span ? SearchObjective::Span : SearchObjective::Makespan;
    request.moves = given.moves.value_or(usual.moves);
    request.seed = given.seed.value_or(usual.seed);
    return request;
}

/// From numbers and costs, for a model without skips.
Found search_numbers(const ScheduleArguments& given, const std::optional<Plan>& plan) {
    const SearchResult result = search_schedule(search_request(given, plan));
    const std::vector<ScheduleEdge> edges = chain_edges(result.schedule.num_stages());
    Found found{result, result.schedule, lower(result.schedule, edges), result.costs};
    check_schedule(found.lowered, edges);
    return found;
}

/// For the model of a plan, as its training does: the same schedule of a pipeline run.
Found search_model(const ScheduleArguments& given, const Plan& trained) {
    Plan plan = with_one_run(trained);
    PipelinePlan& pipeline = plan.pipeline;
    pipeline.schedule_type = "AUTO";
    pipeline.search.moves = given.moves.value_or(pipeline.search.moves);
    pipeline.search.seed = given.seed.value_or(pipeline.search.seed);
    pipeline.search.objective = given.objective.value_or(pipeline.search.objective);
    if (given.memory) pipeline.memory_limit = MemoryLimit{*given.memory, {}};
    if (given.per_rank) {
        pipeline.virtual_chunks = *given.per_rank;
        pipeline.choose_virtual_chunks = false;
    }
    const Program program = make_program(plan);
    const Schedule& lowered = program.training.schedule;
    return {*program.search, computing_part(lowered), lowered, program.costs};
}

Found search(const ScheduleArguments& given) {
    const std::optional<Plan> plan = schedule_plan(given);
    const bool has_numbers = given.num_ranks || given.microbatches || !given.costs.empty();
    return plan && !has_numbers ? search_model(given, *plan) : search_numbers(given, plan);
}

}  // namespace

int run_schedule_search(const ScheduleArguments& given) {
    const Found found = search(given);
    const ScheduleMetrics metrics = measure_schedule(found.lowered, found.costs);
    write_drawings(given, found.lowered, found.costs);
    if (!given.out.empty()) write_file_durably(given.out, to_csv(found.compute));
    if (!given.json) {
        print_metrics(metrics);
        std::cout << "\n" << search_text(found.record, found.costs) << std::endl;
        return 0;
    }
    nlohmann::ordered_json json = metrics_json(metrics);
    json["lower_bound"] = found.costs.units(found.record.lower_bound);
    json["gap"] = found.record.gap();
    json["best_generator"] = found.record.best_generator;
    json["best_generated"] = found.costs.units(found.record.best_generated);
    json["origin"] = found.record.origin;
    json["moves"] = found.record.moves;
    std::cout << json_text(json) << std::endl;
    return 0;
}

}  // namespace vpp
