#include "schedule/search.hpp"

#include "schedule/generators.hpp"
#include "schedule/search_seeds.hpp"
#include "schedule/tied_order.hpp"
#include "unit/schedule/support.hpp"

namespace vpp {
namespace {

using testing::prove;

/// Each rank takes F + I + W = 3 units, shared by its stages, transfers .1; the last stage takes three times its share.
ScheduleCosts heavy_head(const ScheduleSize& size) {
    ScheduleCosts costs;
    const Ticks share = 100;
    costs.ticks_per_unit = static_cast<double>(share * size.stages_per_rank);
    costs.stages.assign(static_cast<size_t>(size.num_stages()), {share, 2 * share, share, share});
    costs.stages.back() = {3 * share, 6 * share, 3 * share, 3 * share};
    costs.transfer = share * size.stages_per_rank / 10;
    return costs;
}

SearchRequest heavy_request(std::vector<int> stages_per_rank, double memory_limit) {
    SearchRequest request;
    request.num_ranks = 4;
    request.num_microbatches = 12;
    request.stages_per_rank = std::move(stages_per_rank);
    request.costs = heavy_head;
    request.memory_limit = memory_limit;
    request.moves = 60000;
    return request;
}

/// Checks, simulates and compares what a result says of itself; gives its proof.
testing::Proved prove_result(const SearchResult& result, double memory_limit) {
    EXPECT_EQ(result.schedule.name, "AUTO");
    testing::Proved proved = prove(result.schedule, result.costs);
    EXPECT_EQ(proved.simulation.makespan, result.makespan);
    EXPECT_EQ(proved.simulation.span, result.span);
    EXPECT_GE(result.cost(), result.lower_bound);
    if (!result.best_generator.empty()) {
        EXPECT_LE(result.cost(), result.best_generated);
    }
    for (int peak : proved.facts.peak_in_flight) EXPECT_LE(peak, memory_limit * result.stages_per_rank);
    return proved;
}

// With several stages on a rank the heavy head unbalances every made schedule.
TEST(SearchSchedule, HeavyHeadIsBetterThanEveryGeneratorAtEqualMemory) {
    const SearchResult result = search_schedule(heavy_request({2}, 4));
    const auto proved = prove_result(result, 4);
    EXPECT_LT(result.makespan, result.best_generated);
    int num_compared = 0;
    for (const ScheduleKind& kind : schedule_kinds()) {
        Schedule generated;
        try {
            generated = make_schedule(kind.name, {.size = {4, 2, 12}, .costs = result.costs, .memory_limit = 4});
        } catch (const Error&) {
            continue;
        }
        const auto other = prove(generated, result.costs);
        const int peak = *std::max_element(other.facts.peak_in_flight.begin(), other.facts.peak_in_flight.end());
        if (generated.forward_only || peak > 8) continue;
        EXPECT_LT(proved.simulation.bubble_rate(), other.simulation.bubble_rate()) << kind.name;
        ++num_compared;
    }
    EXPECT_GE(num_compared, 1);
}

TEST(SearchSchedule, EachNumberOfStagesHasItsOwnLimit) {
    SearchRequest request = heavy_request({1, 2}, 12);
    request.moves = 0;
    request.memory_limit_of = {{1, 2}, {2, 5}};
    const SearchResult result = search_schedule(request);
    prove_result(result, result.stages_per_rank == 1 ? 2 : 5);
    request.memory_limit_of = {{1, 2}};
    request.stages_per_rank = {2};
    EXPECT_LE(search_schedule(request).makespan, result.makespan) << "the common limit of 12 is wider";
}

TEST(SearchSchedule, OfEqualOnesTheSmallestIsTaken) {
    SearchRequest request;
    request.num_microbatches = 4;
    request.stages_per_rank = {1, 2};
    request.split_backward = false;
    const SearchResult result = search_schedule(request);
    EXPECT_EQ(result.stages_per_rank, 1);
    EXPECT_EQ(peak_in_flight(result.schedule), std::vector<int>{1}) << "one rank: all orders take as long";
}

// With one stage on each rank the head alone decides: rank 3 starts after the ramp of 3 units and 3 transfers, works
// 12 x 9 units without a gap, and whoever splits B is done then. No order is better; 1F1B and GPIPE are worse.
TEST(SearchSchedule, LinearHeavyHeadMeetsItsLowerBound) {
    const SearchResult result = search_schedule(heavy_request({1}, 4));
    prove_result(result, 4);
    EXPECT_EQ(result.costs.units(result.makespan), 3.3 + 108);
    EXPECT_EQ(result.lower_bound, result.makespan);
    EXPECT_EQ(result.gap(), 0);
    EXPECT_LT(result.makespan, prove(make_schedule("1F1B", 4, 1, 12), result.costs).simulation.makespan);
    EXPECT_LT(result.makespan, prove(make_schedule("GPIPE", 4, 1, 12), result.costs).simulation.makespan);
}

/// A chain whose ends share a parameter.
std::vector<ScheduleEdge> tied_ends(int num_stages) {
    std::vector<ScheduleEdge> edges = chain_edges(num_stages);
    edges.push_back({num_stages, 0, num_stages - 1, true, 0, true});
    return edges;
}

struct Cost {
    Ticks makespan = 0;
    int peak = 0;
};
Cost cost_of(const Schedule& schedule, const std::vector<ScheduleEdge>& edges, const ScheduleCosts& costs) {
    const std::vector<int> peaks = peak_in_flight(schedule);
    return {simulate(lower(schedule, edges), costs).makespan, *std::max_element(peaks.begin(), peaks.end())};
}

TEST(SearchSchedule, WithATiedParameterItIsStillTheBestWithinTheLimit) {
    int num_compared = 0, num_that_a_search_without_ties_misses = 0;
    for (int v : {1, 2}) {
        const std::vector<ScheduleEdge> edges = tied_ends(4 * v);
        for (int limit : {1, 2, 4, 12}) {
            SearchRequest request = heavy_request({v}, limit);
            request.moves = 5000;
            const SearchResult ignorant = search_schedule(request);
            request.tied_edges[v] = {edges.back()};
            const SearchResult result = search_schedule(request);
            const Cost found = cost_of(result.schedule, edges, result.costs);
            EXPECT_NO_THROW(check_schedule(lower(result.schedule, edges), edges));
            EXPECT_EQ(found.makespan, result.makespan);
            EXPECT_LE(found.peak, limit * v);
            const Cost missed = cost_of(order_tied(ignorant.schedule, edges, result.costs), edges, result.costs);
            num_that_a_search_without_ties_misses += missed.peak > limit * v || missed.makespan > result.makespan;
            for (const ScheduleKind& kind : schedule_kinds()) {
                Schedule made;
                try {
                    made = make_schedule(kind.name, {.size = {4, v, 12}, .costs = result.costs, .memory_limit = limit});
                } catch (const Error&) {
                    continue;
                }
                const Cost other = cost_of(order_tied(made, edges, result.costs), edges, result.costs);
                if (made.forward_only || other.peak > limit * v) continue;
                EXPECT_LE(found.makespan, other.makespan) << kind.name << ", v " << v << ", limit " << limit;
                ++num_compared;
            }
        }
    }
    EXPECT_GE(num_compared, 10);
    EXPECT_GE(num_that_a_search_without_ties_misses, 1);
}

TEST(SearchSchedule, SameSeedAndMovesGiveTheSameLists) {
    SearchRequest request = heavy_request({2}, 4);
    request.moves = 20000;
    const SearchResult one = search_schedule(request), same = search_schedule(request);
    EXPECT_EQ(one.schedule.actions, same.schedule.actions);
    EXPECT_EQ(one.makespan, same.makespan);
    EXPECT_EQ(one.moves, same.moves);
    EXPECT_LE(one.moves, request.moves);
    request.seed = 1;
    EXPECT_NE(one.schedule.actions, search_schedule(request).schedule.actions);
}

TEST(SearchSchedule, OfOneSpanTheShorterMakespanIsTaken) {
    SearchRequest request;
    request.num_ranks = 4;
    request.num_microbatches = 12;
    request.stages_per_rank = {2};
    request.costs = [](const ScheduleSize& size) { return parse_costs("F=1/1/1/1/1/1/1/3", size); };
    request.memory_limit = 4;
    request.objective = SearchObjective::Span;
    request.moves = 0;
    const SearchResult result = search_schedule(request);
    prove_result(result, 4);
    EXPECT_EQ(result.costs.units(result.span), 72);
    EXPECT_EQ(result.costs.units(result.makespan), 72) << "the best span alone has 73.5";
}

void expect_not_worse_than_generators(double limit, SearchObjective objective) {
    SearchRequest request = heavy_request({1, 2, 3}, limit);
    request.objective = objective;
    request.moves = limit < 5 ? 0 : 2000;
    const SearchResult result = search_schedule(request);
    prove_result(result, limit);
    EXPECT_EQ(result.costs.units(result.costs.transfer), 0.1);
    for (int v : request.stages_per_rank) {
        const ScheduleRequest made{.size = {4, v, 12}, .costs = heavy_head({4, v, 12}), .memory_limit = limit};
        for (const SearchSeed& seed : find_seeds({made, objective, true})) {
            EXPECT_LE(result.costs.units(result.cost()), made.costs.units(seed.cost) + 1e-9) << seed.origin;
        }
    }
}

TEST(SearchSchedule, NeverWorseThanTheBestGeneratorEvenWithoutMoves) {
    expect_not_worse_than_generators(1, SearchObjective::Makespan);
    expect_not_worse_than_generators(4, SearchObjective::Span);
    expect_not_worse_than_generators(5.5, SearchObjective::Makespan);
}

TEST(SearchScheduleFull, NeverWorseThanTheBestGeneratorEvenWithoutMoves) {
    for (double limit : {1.0, 2.0, 4.0, 5.5, 12.0}) {
        expect_not_worse_than_generators(limit, SearchObjective::Makespan);
        expect_not_worse_than_generators(limit, SearchObjective::Span);
    }
}

// The same moves serve 256 microbatches as well as 64: a short schedule is searched and its middle repeated. (Searched
// as a whole, they stay 1.5 and 1.9 % above the bound.)
TEST(SearchSchedule, LongSchedulesAreAsGoodAsShortOnes) {
    SearchRequest request;
    request.num_ranks = 2;
    request.stages_per_rank = {3};
    request.costs = [](const ScheduleSize& size) { return parse_costs("comm=0.2", size); };
    request.memory_limit = 2;
    request.moves = 30000;
    for (int num_microbatches : {64, 256}) {
        request.num_microbatches = num_microbatches;
        const SearchResult result = search_schedule(request);
        prove_result(result, 2);
        EXPECT_LT(result.gap(), 0.005) << num_microbatches;
        EXPECT_LE(result.moves, request.moves);
    }
}

TEST(SearchSchedule, WithoutSplitItHasNoInputGradients) {
    SearchRequest request = heavy_request({2}, 6);
    request.split_backward = false;
    request.moves = 20000;
    const SearchResult result = search_schedule(request);
    prove_result(result, 6);
    for (const std::vector<Action>& list : result.schedule.actions) {
        for (const Action& action : list) EXPECT_TRUE(action.kind == ActionKind::F || action.kind == ActionKind::B);
    }
}

// A B that is cheaper than I and W together is kept where it helps.
TEST(SearchSchedule, CheapFusedBackwardIsNotSplit) {
    SearchRequest request;
    request.num_ranks = 2;
    request.num_microbatches = 6;
    request.moves = 5000;
    request.costs = [](const ScheduleSize& size) {
        ScheduleCosts costs;
        costs.stages.assign(static_cast<size_t>(size.num_stages()), {1, 2, 2, 2});
        return costs;
    };
    const SearchResult result = search_schedule(request);
    EXPECT_EQ(result.makespan, 6 * 3 + 3);  // 1F1B
    EXPECT_EQ(result.schedule.actions[0][1].kind, ActionKind::F);
}

TEST(SearchSchedule, WhatCannotBeIsRefused) {
    const std::string memory = testing::error_text(ErrorKind::Plan, [] { search_schedule(heavy_request({1}, 0.5)); });
    EXPECT_CONTAINS(memory, "got memory_limit = 0.5, expected at least 1");
    const std::string size = testing::error_text(ErrorKind::Plan, [] { search_schedule(heavy_request({0}, 4)); });
    EXPECT_CONTAINS(size, "virtual_chunks");
    SearchRequest precise = heavy_request({1}, 4);
    precise.costs = [](const ScheduleSize& s) {
        ScheduleCosts costs = heavy_head(s);
        costs.stages.front().forward = Ticks{1} << 50;
        return costs;
    };
    const std::string digits = testing::error_text(ErrorKind::Plan, [&] { search_schedule(precise); });
    EXPECT_CONTAINS(digits, "fewer decimal places");
}

}  // namespace
}  // namespace vpp
