// vpp schedule search: AUTO.
#include <iostream>
#include <nlohmann/json.hpp>

#include "app/commands/commands.hpp"
#include "app/commands/schedule_choice.hpp"
#include "app/commands/schedule_figures.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/units.hpp"
#include "schedule/checker.hpp"
#include "schedule/edges.hpp"
#include "schedule/lowering.hpp"
#include "schedule/search.hpp"

namespace vpp {

namespace {

constexpr int kMostTriedPerRank = 4;

/// The stages per rank to choose from: the given number, else all up to kMostTriedPerRank that the costs can be for.
std::vector<int> candidates(const ScheduleArguments& given, const ScheduleSize& size) {
    if (given.per_rank) return {*given.per_rank};
    std::vector<int> fitting;
    for (int per_rank = 1; per_rank <= kMostTriedPerRank; ++per_rank) {
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

SearchRequest request_of(const CommandLine& line) {
    const ScheduleArguments& given = line.schedule;
    const ScheduleSize size = ranks_and_microbatches(given, schedule_plan(line));
    SearchRequest request;
    request.num_ranks = size.num_ranks;
    request.num_microbatches = size.num_microbatches;
    request.stages_per_rank = candidates(given, size);
    request.costs = [text = given.costs](const ScheduleSize& one) { return parse_costs(text, one); };
    request.memory_limit = given.memory;
    request.objective = given.objective == "span" ? SearchObjective::Span : SearchObjective::Makespan;
    request.moves = given.moves.value_or(kDefaultSearchMoves);
    request.seed = given.seed;
    return request;
}

void print(const SearchResult& result, const ScheduleMetrics& metrics) {
    print_metrics(metrics);
    const auto units = [&](Ticks ticks) { return fixed_text(result.costs.units(ticks), 3); };
    std::cout << "\nfound from " << result.origin << " in " << result.moves << " moves: " << units(result.cost());
    if (!result.best_generator.empty()) {
        std::cout << "; the best generated one is " << result.best_generator << " with "
                  << units(result.best_generated);
    }
    std::cout << "\nlower bound " << units(result.lower_bound) << ", gap " << fixed_text(100 * result.gap(), 2)
              << " %\n";
    std::cout.flush();
}

}  // namespace

int run_schedule_search(const CommandLine& line) {
    const SearchResult result = search_schedule(request_of(line));
    const std::vector<ScheduleEdge> edges = chain_edges(result.schedule.num_stages());
    const Schedule lowered = lower(result.schedule, edges);
    check_schedule(lowered, edges);
    const ScheduleMetrics metrics = measure_schedule(lowered, result.costs);
    write_drawings(line.schedule, lowered, result.costs);
    if (!line.schedule.out.empty()) write_file_durably(line.schedule.out, to_csv(result.schedule));
    if (!line.schedule.json) {
        print(result, metrics);
        return 0;
    }
    nlohmann::ordered_json json = metrics_json(metrics);
    json["lower_bound"] = result.costs.units(result.lower_bound);
    json["gap"] = result.gap();
    json["best_generator"] = result.best_generator;
    json["best_generated"] = result.costs.units(result.best_generated);
    json["origin"] = result.origin;
    json["moves"] = result.moves;
    std::cout << json.dump() << std::endl;
    return 0;
}

}  // namespace vpp
