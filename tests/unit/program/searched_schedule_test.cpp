// schedule_type AUTO over graphs made by hand.
#include "program/searched_schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "graph/split.hpp"
#include "graph/stages.hpp"
#include "plan/reader.hpp"
#include "plan/rules.hpp"
#include "program/activation_limit.hpp"
#include "schedule/checker.hpp"
#include "schedule/edges.hpp"
#include "schedule/generators.hpp"
#include "schedule/lowering.hpp"
#include "schedule/simulator.hpp"
#include "unit/graph/graphs.hpp"
#include "unit/plan/plan_texts.hpp"

namespace vpp {
namespace {

using test::error_of;
using test::holds;

/// Equal ops with weights, each with `size` outputs; the last, the head, is three times as heavy.
Graph heavy_head(int num_ops = 8, int64_t size = 8) {
    test::GraphMaker maker;
    int value = maker.input("x");
    for (int i = 0; i < num_ops; ++i) {
        const int w = maker.parameter("w" + std::to_string(i), 4);
        value = maker.op("m" + std::to_string(i), {value, w}, i + 1 < num_ops ? 1e6 : 3e6, size);
        maker.last_op().kept_bytes = 1024;
    }
    return maker.finish();
}

Plan searched_plan(std::vector<std::string> arguments, int ranks) {
    arguments.insert(arguments.end(), {"pipeline.schedule_type=AUTO", "pipeline.num_microbatches=8"});
    return resolve_plan(parse_plan(test::kShortPlan, "plan.toml", arguments, test::built_names()), ranks);
}

/// Costs by hand: every op has F = 1, B = 2, and halves that take this together.
CostModel costs_with_halves(const Graph& graph, double halves) {
    CostModel costs;
    costs.ops.assign(graph.ops.size(), {1, 2, halves / 2, halves / 2});
    costs.unit = "ms";
    costs.is_measured = true;
    return costs;
}

int num_halves(const Schedule& schedule) {
    int count = 0;
    for (const std::vector<Action>& list : schedule.actions) {
        for (const Action& action : list) count += action.kind == ActionKind::I;
    }
    return count;
}

SearchResult search(const Plan& plan, const Graph& graph) {
    return search_schedule(plan, graph, find_costs(plan, graph));
}

/// The best makespan of the schedules that a plan may name, at the costs of the same cuts.
Ticks best_generated(const SearchResult& result, double memory_limit) {
    Ticks best = std::numeric_limits<Ticks>::max();
    const ScheduleSize size{result.schedule.num_ranks, result.stages_per_rank, result.schedule.num_microbatches};
    for (const std::string& name : schedule_names()) {
        const ScheduleKind& kind = *find_schedule_kind(name);
        if (size.stages_per_rank < kind.fewest_per_rank || size.stages_per_rank > kind.most_per_rank) continue;
        const Schedule made = make_schedule(name, {size, result.costs, memory_limit});
        const std::vector<int> peaks = peak_in_flight(made);
        if (*std::max_element(peaks.begin(), peaks.end()) > memory_limit * size.stages_per_rank) continue;
        best = std::min(best, simulate(lower(made, chain_edges(size.num_stages())), result.costs).makespan);
    }
    return best;
}

TEST(SearchedSchedule, HalvesAreChosenOnlyWhereMeasuredCostsSayThatTheyPay) {
    const Graph graph = heavy_head();
    const Plan plan = searched_plan({"pipeline.search.moves=2000", "pipeline.split_method=AUTO"}, 2);
    const SearchResult paying = search_schedule(plan, graph, costs_with_halves(graph, 2));
    EXPECT_GT(num_halves(paying.schedule), 0);
    const SearchResult dear = search_schedule(plan, graph, costs_with_halves(graph, 6));
    EXPECT_EQ(num_halves(dear.schedule), 0) << "I and W take three times what B does";
    EXPECT_LE(dear.moves, 2000) << "both searches share the plan's moves";
}

TEST(SearchedSchedule, HalvesThatGainLessThanMeasuredStepsShowAreNotChosen) {
    const Graph graph = heavy_head();
    const Plan plan = searched_plan({"pipeline.search.moves=2000", "pipeline.split_method=AUTO"}, 2);
    const SearchResult whole = search_schedule(plan, graph, costs_with_halves(graph, 6));
    ASSERT_EQ(num_halves(whole.schedule), 0);
    bool is_refused = false;
    for (const double halves : {2.0, 2.05, 2.1, 2.15, 2.2, 2.25, 2.3, 2.35, 2.4}) {
        CostModel costs = costs_with_halves(graph, halves);
        const SearchResult chosen = search_schedule(plan, graph, costs);
        costs.is_measured = false;  // the search as it is
        const SearchResult best = search_schedule(plan, graph, costs);
        const double gain = 1 - static_cast<double>(best.makespan) / static_cast<double>(whole.makespan);
        if (num_halves(chosen.schedule) > 0) {
            EXPECT_LE(static_cast<double>(chosen.makespan),
                      (1 - kWorthwhileGain) * static_cast<double>(whole.makespan));
        }
        const bool hardly_pays = num_halves(best.schedule) > 0 && gain > 0 && gain < kWorthwhileGain / 2;
        if (hardly_pays) {
            EXPECT_EQ(num_halves(chosen.schedule), 0) << halves;
        }
        is_refused = is_refused || hardly_pays;
        EXPECT_LE(chosen.lower_bound, best.makespan) << "no order is better, divided or not";
    }
    EXPECT_TRUE(is_refused) << "some halves gain a little";
}

TEST(SearchedSchedule, AHeavyHeadIsBetterThanEveryGeneratorAtTheSameMemory) {
    const Plan plan =
        searched_plan({"pipeline.virtual_chunks=2", "pipeline.memory_limit=6", "pipeline.search.moves=20000"}, 4);
    const SearchResult result = search(plan, heavy_head());
    EXPECT_EQ(result.stages_per_rank, 2);
    EXPECT_NO_THROW(check_schedule(lower(result.schedule, chain_edges(8)), chain_edges(8)));
    for (int peak : peak_in_flight(result.schedule)) EXPECT_LE(peak, 12);
    const Ticks generated = best_generated(result, 6);
    EXPECT_LE(result.best_generated, generated) << "the search tries group sizes too";
    EXPECT_LE(result.makespan, result.best_generated);
    EXPECT_LT(result.makespan, generated);
    EXPECT_LE(result.lower_bound, result.makespan);
}

/// The heavy head has the weight of the first op.
Graph tied_ends() {
    test::GraphMaker maker;
    int value = maker.input("x");
    const int tied = maker.parameter("tied", 4);
    for (int i = 0; i < 8; ++i) {
        const bool is_tied = i == 0 || i == 7;
        const int own = is_tied ? tied : maker.parameter("w" + std::to_string(i), 4);
        value = maker.op("m" + std::to_string(i), {value, own}, i < 7 ? 1e6 : 3e6);
        maker.last_op().kept_bytes = 1024;
    }
    return maker.finish();
}

// The W of the first stage waits for that of the last: the simulated makespan counts it, and so does the limit.
TEST(SearchedSchedule, TiedWeightsAreWaitedForAndKeepToTheLimit) {
    const Graph graph = tied_ends();
    for (const char* limit : {"1", "2", "3", "8"}) {
        const Plan plan = searched_plan(
            {"pipeline.virtual_chunks=2", "pipeline.search.moves=2000", std::string("pipeline.memory_limit=") + limit},
            2);
        const CostModel model = find_costs(plan, graph);
        const SearchResult result = search_schedule(plan, graph, model);
        const Split split = make_stages(graph, find_split(graph, plan, 4));
        const auto edges = schedule_edges(split);
        ASSERT_TRUE(std::any_of(edges.begin(), edges.end(), [](const ScheduleEdge& edge) { return edge.tied; }));
        const Schedule lowered = lower(result.schedule, edges);
        EXPECT_NO_THROW(check_schedule(lowered, edges));
        EXPECT_EQ(result.makespan, simulate(lowered, costs_of_split(model, split, 2)).makespan) << limit;
        for (int peak : peak_in_flight(result.schedule)) EXPECT_LE(peak, 2 * std::stoi(limit));
    }
}

TEST(SearchedSchedule, TheSameSeedAndMovesGiveTheSameLists) {
    const Plan plan = searched_plan({"pipeline.virtual_chunks=auto", "pipeline.search.moves=3000"}, 2);
    const SearchResult one = search(plan, heavy_head()), other = search(plan, heavy_head());
    EXPECT_EQ(one.schedule.actions, other.schedule.actions);
    EXPECT_EQ(one.stages_per_rank, other.stages_per_rank);
    EXPECT_EQ(one.lower_bound, other.lower_bound);
}

TEST(SearchedSchedule, AutoChunksAreNoWorseThanAnyNumber) {
    const auto makespan = [](const std::string& chunks) {
        return search(searched_plan({"pipeline.virtual_chunks=" + chunks, "pipeline.search.moves=0"}, 2), heavy_head())
            .makespan;
    };
    const Ticks best = makespan("auto");
    for (const char* chunks : {"1", "2", "3", "4"}) EXPECT_LE(best, makespan(chunks)) << chunks;
}

TEST(SearchedSchedule, AutoChunksStopWhereTheModelCannotBeCut) {
    const Plan plan = searched_plan({"pipeline.virtual_chunks=auto", "pipeline.search.moves=0"}, 2);
    EXPECT_LE(search(plan, heavy_head(4)).stages_per_rank, 2);
    const Error error = error_of([&] { search(plan, heavy_head(1)); });
    EXPECT_EQ(error.kind(), ErrorKind::Plan);
    EXPECT_TRUE(holds(error.what(), "cannot be split into 2 stages")) << error.what();
}

/// What the fullest rank holds of a searched schedule, with the split that the search made.
int64_t held_bytes(const Plan& plan, const Graph& graph, const SearchResult& result) {
    const Split split = make_stages(graph, find_split(graph, plan, *plan.mesh.pp * result.stages_per_rank));
    return ActivationMemory(plan, graph, split).peak_bytes(result.schedule);
}

// From the least that one microbatch takes on: counts of activations alone would let W's share go above the limit.
TEST(SearchedSchedule, BytesAreNeverExceeded) {
    const Graph graph = heavy_head(8, /*size=*/256);
    const CostModel halves = costs_with_halves(graph, 1.8);  // which pays
    int num_divided = 0;
    for (const char* chunks : {"1", "2", "auto"}) {
        for (int bytes : {8300, 9000, 11'000, 14'000, 18'000, 24'000, 32'000}) {
            const Plan plan =
                searched_plan({std::string("pipeline.virtual_chunks=") + chunks,
                               "pipeline.memory_limit=" + std::to_string(bytes) + "B", "pipeline.search.moves=300"},
                              2);
            for (const CostModel& costs : {find_costs(plan, graph), halves}) {
                const SearchResult result = search_schedule(plan, graph, costs);
                EXPECT_LE(held_bytes(plan, graph, result), bytes) << chunks;
                EXPECT_LE(result.lower_bound, result.cost());
                num_divided += num_halves(result.schedule) > 0 ? 1 : 0;
            }
        }
    }
    EXPECT_GT(num_divided, 0);
}

// Under a limit in bytes the loosest count of activations is too much for it, and one is too little.
TEST(SearchedSchedule, UnderBytesItIsNoWorseThanTheGreedyGenerator) {
    const Graph graph = heavy_head(8, /*size=*/256);
    int num_compared = 0;
    for (int bytes = 9000; bytes < 40'000; bytes += 1000) {
        const Plan plan = searched_plan({"pipeline.virtual_chunks=1", "pipeline.search.moves=0",
                                         "pipeline.memory_limit=" + std::to_string(bytes) + "B"},
                                        2);
        const CostModel model = find_costs(plan, graph);
        const SearchResult result = search_schedule(plan, graph, model);
        const Split split = make_stages(graph, find_split(graph, plan, 2));
        const ActivationMemory memory(plan, graph, split);
        const ScheduleCosts costs = costs_of_split(model, split, 2);
        const Schedule greedy = within_limit(plan, memory, {2, 1, 8}, [&](std::optional<double> limit) {
            return make_schedule("ZERO_BUBBLE_GREEDY", {.size = {2, 1, 8}, .costs = costs, .memory_limit = limit});
        });
        if (!keeps_to_limit(plan, greedy, memory)) continue;
        ++num_compared;
        const Ticks makespan = simulate(lower(greedy, schedule_edges(split)), costs).makespan;
        EXPECT_LE(static_cast<double>(result.makespan) / result.costs.ticks_per_unit, costs.units(makespan)) << bytes;
    }
    EXPECT_GT(num_compared, 20);
}

TEST(SearchedSchedule, BytesLimitEachNumberOfStages) {
    const Graph graph = heavy_head();
    const Plan tight = searched_plan({"pipeline.virtual_chunks=auto", "pipeline.memory_limit=1KiB"}, 2);
    EXPECT_TRUE(holds(error_of([&] { search(tight, graph); }).what(), "less than the activations of one microbatch"));
}

TEST(SearchedSchedule, TheObjectiveIsThePlans) {
    const Plan plan = searched_plan({"pipeline.search.objective=span", "pipeline.search.moves=0"}, 2);
    EXPECT_EQ(search(plan, heavy_head()).objective, SearchObjective::Span);
}

TEST(SearchedSchedule, ThePlansDefaultIsTheSearchs) {
    EXPECT_EQ(SearchPlan{}.moves, kDefaultSearchMoves);
}

}  // namespace
}  // namespace vpp
