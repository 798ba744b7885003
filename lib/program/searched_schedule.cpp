#include "program/searched_schedule.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "base/error.hpp"
#include "graph/recompute.hpp"
#include "graph/split.hpp"
#include "graph/stages.hpp"
#include "program/activation_limit.hpp"
#include "schedule/edges.hpp"
#include "schedule/lowering.hpp"
#include "schedule/placement.hpp"
#include "schedule/simulator.hpp"

namespace vpp {

namespace {

/// The plan's numbers with v stages a rank.
ScheduleSize size_with(const Plan& plan, int stages_per_rank) {
    return {*plan.mesh.pp, stages_per_rank, *plan.pipeline.num_microbatches};
}

/// The numbers of stages per rank to choose from, with the split, its memory and the loosest limit of each.
struct Candidates {
    std::vector<int> stages_per_rank;
    std::map<int, Split> splits;
    std::map<int, ActivationMemory> memory;
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
    const std::vector<int> cuts = find_split(graph, fixed, size.num_stages(), &times);
    Split split = make_stages(graph, cuts, find_recomputed(graph, plan, cuts));
    if (plan.pipeline.tied_gradients == "per_step") sum_ties_per_step(split);
    const ActivationMemory memory(plan, graph, split);
    const auto limit = activation_limit(plan, memory, size);
    candidates.stages_per_rank.push_back(stages_per_rank);
    candidates.splits[stages_per_rank] = std::move(split);
    candidates.memory.emplace(stages_per_rank, memory);
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

/// The search of a plan, with limits that are tighter where what it finds with the loosest does not keep to the bytes.
class BytesSearch {
  public:
    BytesSearch(const Plan& plan, const Candidates& candidates, SearchRequest request, bool halves_must_pay)
        : plan_(plan), candidates_(candidates), request_(std::move(request)), halves_must_pay_(halves_must_pay) {}

    SearchResult run() {
        const SearchResult loosest = search(request_);
        if (keeps(loosest)) return loosest;
        for (const int64_t moves : {request_.moves, int64_t{0}}) {
            request_.moves = moves;
            std::optional<SearchResult> best;
            try_safe(best);
            try_largest(best);
            if (!best) try_one_at_a_time(best);
            if (!best) continue;
            best->moves = num_moves_;
            best->lower_bound = in_ticks_of(*best, loosest);
            return *best;
        }
        return loosest;  // refused by check_activations, if ever
    }

  private:
    SearchResult search(const SearchRequest& request) {
        SearchResult found =
            halves_must_pay_ && request.split_backward ? search_halves_that_pay(request) : search_schedule(request);
        num_moves_ += found.moves;
        return found;
    }

    bool keeps(const SearchResult& result) const {
        return keeps_to_limit(plan_, result.schedule, candidates_.memory.at(result.stages_per_rank));
    }

    static double cost_of(const SearchResult& result) {
        return static_cast<double>(result.cost()) / result.costs.ticks_per_unit;
    }

    /// The bound under the loosest limit holds for the plan's; a tighter limit has a higher one.
    static Ticks in_ticks_of(const SearchResult& result, const SearchResult& loosest) {
        const double bound = static_cast<double>(loosest.lower_bound) / loosest.costs.ticks_per_unit;
        return std::min(result.cost(), static_cast<Ticks>(bound * result.costs.ticks_per_unit));
    }

    /// With limits that surely hold, once for schedules with halves of a backward and once for others.
    void try_safe(std::optional<SearchResult>& best) {
        for (const bool with_halves : {true, false}) {
            SearchRequest safe = request_;
            safe.split_backward = with_halves;
            safe.stages_per_rank.clear();
            for (int v : request_.stages_per_rank) {
                const auto limit = safe_limit(plan_, candidates_.memory.at(v), size_with(plan_, v), with_halves);
                if (!limit) continue;
                safe.stages_per_rank.push_back(v);
                safe.memory_limit_of[v] = *limit;
            }
            if (!safe.stages_per_rank.empty()) keep_better(best, search(safe));
        }
    }

    /// With the largest limits at which what is found without moves keeps to the bytes.
    void try_largest(std::optional<SearchResult>& best) {
        SearchRequest largest = request_;
        largest.stages_per_rank.clear();
        for (int v : request_.stages_per_rank) {
            const auto keeps_with = [&](int num_held) {
                SearchRequest tried = request_;
                tried.moves = 0;
                tried.stages_per_rank = {v};
                tried.memory_limit_of = {{v, static_cast<double>(num_held) / v}};
                SearchResult found = search(tried);
                const bool keeps_to = keeps(found);
                keep_better(best, std::move(found));
                return keeps_to;
            };
            if (!keeps_with(v)) continue;
            const auto loosest = candidates_.memory_limit.find(v);
            double most = request_.num_microbatches;
            if (loosest != candidates_.memory_limit.end()) most = std::min(most, loosest->second);
            int fits = v, above = static_cast<int>(most * v) + 1;
            while (above - fits > 1) {
                const int middle = (above + fits) / 2;
                (keeps_with(middle) ? fits : above) = middle;
            }
            largest.stages_per_rank.push_back(v);
            largest.memory_limit_of[v] = static_cast<double>(fits) / v;
        }
        if (request_.moves > 0 && !largest.stages_per_rank.empty()) keep_better(best, search(largest));
    }

    /// Stages that differ may leave room for a microbatch where the safe limit has none.
    void try_one_at_a_time(std::optional<SearchResult>& best) {
        for (int v : request_.stages_per_rank) {
            SearchRequest one = request_;
            one.split_backward = false;
            one.stages_per_rank = {v};
            one.memory_limit_of = {{v, 1}};
            const SearchResult found = search(one);
            keep_better(best, found);
            for (Placement placement : {Placement::Loop, Placement::V}) keep_better(best, in_turn(found, placement));
        }
    }

    /// One microbatch behind the other, which has room where any has.
    SearchResult in_turn(const SearchResult& found, Placement placement) const {
        const ScheduleSize size = size_with(plan_, found.stages_per_rank);
        std::vector<ScheduleEdge> edges = chain_edges(size.num_stages());
        const auto tied = request_.tied_edges.find(size.stages_per_rank);
        if (tied != request_.tied_edges.end()) edges.insert(edges.end(), tied->second.begin(), tied->second.end());
        SearchResult result = found;
        result.schedule = one_at_a_time(size.num_ranks, place_stages(placement, size), size.num_microbatches);
        result.schedule.name = found.schedule.name;
        result.origin = "one microbatch at a time";
        const Simulation simulation = simulate(lower(result.schedule, edges), result.costs);
        result.makespan = simulation.makespan;
        result.span = simulation.span;
        return result;
    }

    void keep_better(std::optional<SearchResult>& best, SearchResult found) const {
        if (keeps(found) && (!best || cost_of(found) < cost_of(*best))) best = std::move(found);
    }

    const Plan& plan_;
    const Candidates& candidates_;
    SearchRequest request_;
    bool halves_must_pay_;
    int64_t num_moves_ = 0;
};

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
        return BytesSearch(plan, candidates, std::move(request), costs.is_measured).run();
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::Plan) throw;
        throw Error(ErrorKind::Plan, error.problems().front().message, plan.where("pipeline.schedule_type"));
    }
}

}  // namespace vpp
