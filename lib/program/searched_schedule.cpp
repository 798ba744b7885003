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

/// The numbers of stages per rank to choose from, with the split and the limit of each.
struct Candidates {
    std::vector<int> stages_per_rank;
    std::map<int, Split> splits;
    std::map<int, double> memory_limit;
};

/// The gradients of tied parameters between stages, numbered behind the edges of the chain as which a search sees the
/// model. `of_split` has their costs under the split's own numbers.
std::vector<ScheduleEdge> tied_edges(const Split& split, const ScheduleCosts& of_split, ScheduleCosts& of_chain) {
    std::vector<ScheduleEdge> tied;
    for (ScheduleEdge edge : schedule_edges(split)) {
        if (!edge.tied) continue;
        const Ticks transfer = of_split.of_transfer(edge.id);
        edge.id = static_cast<int>(split.stages.size() + tied.size());
        of_chain.transfer_of[edge.id] = transfer;
        tied.push_back(edge);
    }
    return tied;
}

void add_candidate(const Plan& plan, const Graph& graph, const CostModel& costs, int stages_per_rank,
                   Candidates& candidates) {
    Plan fixed = plan;
    fixed.pipeline.virtual_chunks = stages_per_rank;
    const ScheduleSize size = size_with(plan, stages_per_rank);
    check_size(size);
    const SplitTimes times = split_times(costs, fixed, stages_per_rank, nullptr);
    Split split = make_stages(graph, find_split(graph, fixed, size.num_stages(), &times));
    if (plan.pipeline.tied_gradients == "per_step") sum_ties_per_step(split);
    const auto limit = activation_limit(plan, split, size);
    candidates.stages_per_rank.push_back(stages_per_rank);
    candidates.splits[stages_per_rank] = std::move(split);
    if (limit) candidates.memory_limit[stages_per_rank] = *limit;
}

/// What cannot be is left out; when nothing can, the first reason is the error.
Candidates find_candidates(const Plan& plan, const Graph& graph, const CostModel& costs) {
    Candidates candidates;
    if (!plan.pipeline.choose_virtual_chunks) {
        add_candidate(plan, graph, costs, plan.pipeline.virtual_chunks, candidates);
        return candidates;
    }
    std::optional<Error> refusal;
    for (int stages_per_rank = 1; stages_per_rank <= kMostSearchedPerRank; ++stages_per_rank) {
        try {
            add_candidate(plan, graph, costs, stages_per_rank, candidates);
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::Plan) throw;
            if (!refusal) refusal = error;
        }
    }
    if (candidates.stages_per_rank.empty()) throw Error(*refusal);
    return candidates;
}

SearchResult search_halves_that_pay(SearchRequest request) {
    SearchRequest without_halves = request;
    without_halves.split_backward = false;
    without_halves.moves = request.moves / 4;
    request.moves -= without_halves.moves;
    SearchResult divided = search_schedule(request);
    if (!divided.schedule.divides_backward()) return divided;
    SearchResult whole = search_schedule(without_halves);
    whole.moves += divided.moves;
    divided.moves = whole.moves;
    whole.lower_bound = divided.lower_bound;
    check(whole.costs.ticks_per_unit == divided.costs.ticks_per_unit, "both are in the unit of the same candidates");
    const double gain = 1 - static_cast<double>(divided.cost()) / static_cast<double>(whole.cost());
    return gain < kWorthwhileGain ? whole : divided;
}

}  // namespace

SearchResult search_schedule(const Plan& plan, const Graph& graph, const CostModel& costs) {
    const Candidates candidates = find_candidates(plan, graph, costs);
    const SearchPlan& search = plan.pipeline.search;
    SearchRequest request;
    request.num_ranks = *plan.mesh.pp;
    request.num_microbatches = *plan.pipeline.num_microbatches;
    request.stages_per_rank = candidates.stages_per_rank;
    std::map<int, ScheduleCosts> costs_of;
    for (const auto& [stages_per_rank, split] : candidates.splits) {
        ScheduleCosts& of_chain = costs_of[stages_per_rank];
        of_chain = costs_of_stages(costs, graph, split.cuts, request.num_ranks);
        std::vector<ScheduleEdge> tied = tied_edges(split, costs_of_split(costs, split, request.num_ranks), of_chain);
        if (!tied.empty()) request.tied_edges[stages_per_rank] = std::move(tied);
    }
    request.costs = [&](const ScheduleSize& size) { return costs_of.at(size.stages_per_rank); };
    request.memory_limit_of = candidates.memory_limit;
    request.objective = search.objective == "span" ? SearchObjective::Span : SearchObjective::Makespan;
    request.moves = search.moves;
    request.seed = search.seed;
    try {
        return costs.is_measured ? search_halves_that_pay(request) : search_schedule(request);
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::Plan) throw;
        throw Error(ErrorKind::Plan, error.problems().front().message, plan.where("pipeline.schedule_type"));
    }
}

}  // namespace vpp
