#include "program/searched_schedule.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "base/error.hpp"
#include "graph/split.hpp"
#include "graph/stages.hpp"
#include "program/activation_limit.hpp"

namespace vpp {

namespace {

/// The plan's numbers with v stages a rank.
ScheduleSize size_with(const Plan& plan, int stages_per_rank) {
    return {*plan.mesh.pp, stages_per_rank, *plan.pipeline.num_microbatches};
}

/// The numbers of stages per rank to choose from, with the cuts and the limit of each.
struct Candidates {
    std::vector<int> stages_per_rank;
    std::map<int, std::vector<int>> cuts;
    std::map<int, double> memory_limit;
    bool has_tied_weights = false;  ///< in two stages
};

void add_candidate(const Plan& plan, const Graph& graph, int stages_per_rank, Candidates& candidates) {
    Plan fixed = plan;
    fixed.pipeline.virtual_chunks = stages_per_rank;
    const ScheduleSize size = size_with(plan, stages_per_rank);
    check_size(size);
    std::vector<int> cuts = find_split(graph, fixed, size.num_stages());
    const Split split = make_stages(graph, cuts);
    const auto limit = activation_limit(plan, split, size);
    const bool is_tied = std::any_of(split.edges.begin(), split.edges.end(), [](const Edge& e) { return e.is_tied(); });
    candidates.has_tied_weights = candidates.has_tied_weights || is_tied;
    candidates.stages_per_rank.push_back(stages_per_rank);
    candidates.cuts[stages_per_rank] = std::move(cuts);
    if (limit) candidates.memory_limit[stages_per_rank] = *limit;
}

/// What cannot be is left out; when nothing can, the first reason is the error.
Candidates find_candidates(const Plan& plan, const Graph& graph) {
    Candidates candidates;
    if (!plan.pipeline.choose_virtual_chunks) {
        add_candidate(plan, graph, plan.pipeline.virtual_chunks, candidates);
        return candidates;
    }
    std::optional<Error> refusal;
    for (int stages_per_rank = 1; stages_per_rank <= kMostSearchedPerRank; ++stages_per_rank) {
        try {
            add_candidate(plan, graph, stages_per_rank, candidates);
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::Plan) throw;
            if (!refusal) refusal = error;
        }
    }
    if (candidates.stages_per_rank.empty()) throw Error(*refusal);
    return candidates;
}

}  // namespace

SearchResult search_schedule(const Plan& plan, const Graph& graph, const CostModel& costs) {
    const Candidates candidates = find_candidates(plan, graph);
    const SearchPlan& search = plan.pipeline.search;
    SearchRequest request;
    request.num_ranks = *plan.mesh.pp;
    request.num_microbatches = *plan.pipeline.num_microbatches;
    request.stages_per_rank = candidates.stages_per_rank;
    request.costs = [&](const ScheduleSize& size) {
        return costs_of_stages(costs, graph, candidates.cuts.at(size.stages_per_rank), size.num_ranks);
    };
    request.memory_limit_of = candidates.memory_limit;
    request.objective = search.objective == "span" ? SearchObjective::Span : SearchObjective::Makespan;
    request.split_backward = !candidates.has_tied_weights;
    request.moves = search.moves;
    request.seed = search.seed;
    try {
        return search_schedule(request);
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::Plan) throw;
        throw Error(ErrorKind::Plan, error.problems().front().message, plan.where("pipeline.schedule_type"));
    }
}

}  // namespace vpp
