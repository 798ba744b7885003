#include "schedule/v_search.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "schedule/v_half.hpp"
#include "schedule/v_shape.hpp"
#include "unit/schedule/v_support.hpp"

namespace vpp {
namespace {

using testing::prove;

testing::Proved prove_run(const ScheduleRequest& request, const VRun& run, const std::vector<ScheduleEdge>& edges) {
    Schedule schedule = make_empty_v(request.size, "X");
    schedule.actions = run.actions;
    testing::expect_ascending(schedule);
    return prove(schedule, edges, request.costs);
}

TEST(HopBlocks, AreDistinctOrderedAndRepeatWithoutCollision) {
    for (int P : {1, 2, 3, 4, 7, 12, 40}) {
        const std::vector<VBlock> blocks = hop_blocks(P);
        std::set<std::vector<Ticks>> seen;
        for (const VBlock& block : blocks) {
            ASSERT_EQ(block.starts.size(), static_cast<size_t>(4 * P));
            EXPECT_EQ(block.starts.front(), 0);
            EXPECT_TRUE(std::is_sorted(block.starts.begin(), block.starts.end(), std::less_equal<>()));
            for (int rank = 0; rank < P; ++rank) {
                std::set<Ticks> taken;
                for (int hop : {rank, 2 * P - 1 - rank, 2 * P + rank, 4 * P - 1 - rank}) {
                    taken.insert(block.starts[static_cast<size_t>(hop)] % 6);
                }
                EXPECT_EQ(taken.size(), 4U) << P;
            }
            seen.insert(block.starts);
        }
        EXPECT_EQ(seen.size(), blocks.size()) << P;
        EXPECT_GT(blocks.size(), 20U) << P;
    }
}

TEST(HopBlocks, ContainThePublishedOnes) {
    for (int P : {4, 5, 6, 7}) {
        const std::vector<VBlock> blocks = hop_blocks(P);
        for (const VBlock& published : {v_half_block(P), v_min_block(P)}) {
            const bool found = std::any_of(blocks.begin(), blocks.end(),
                                           [&](const VBlock& block) { return block.starts == published.starts; });
            EXPECT_TRUE(found) << P;
        }
    }
}

TEST(HopBlocks, CoverTheMemoryFromAThirdToAll) {
    for (int P : {6, 8, 12, 40}) {
        std::set<int> peaks;
        for (const VBlock& block : hop_blocks(P)) peaks.insert(block_peak(block, P));
        EXPECT_LE(*peaks.begin(), 2 * ((P + 4) / 3) + 1);
        EXPECT_GE(*peaks.rbegin(), 2 * P);
    }
}

// Random shapes, edges, costs and limits: proved, ascending, never above the limit.
TEST(SearchV, StaysBelowEveryLimit) {
    int at_the_limit = 0;
    for (int shape = 0; shape < 150; ++shape) {
        testing::Draws draws(static_cast<uint64_t>(shape));
        const int P = 1 + draws.below(8);
        const ScheduleRequest request{.size = {P, 2, 1 + draws.below(3 * P)},
                                      .costs = testing::random_costs(2 * P, draws)};
        const VSearch search{.most = 2 + draws.below(2 * P + 2),
                             .goal = draws.below(2) ? VGoal::Span : VGoal::Makespan,
                             .most_actions = 10000};
        SCOPED_TRACE("P " + std::to_string(P) + " M " + std::to_string(request.size.num_microbatches) + " most " +
                     std::to_string(search.most));
        const VRun run = search_v(request, search);
        const auto proved = prove_run(request, run, chain_edges(2 * P));
        EXPECT_EQ(proved.simulation.makespan, run.makespan);
        EXPECT_EQ(proved.simulation.span, run.span);
        const auto& peaks = proved.facts.peak_in_flight;
        EXPECT_LE(*std::max_element(peaks.begin(), peaks.end()), search.most);
        at_the_limit += *std::max_element(peaks.begin(), peaks.end()) == search.most ? 1 : 0;
        ASSERT_NO_THROW(prove_run(request, run, testing::random_edges(2 * P, static_cast<uint64_t>(shape))));
    }
    EXPECT_GT(at_the_limit, 75);  // the limit is what holds them back
}

TEST(SearchV, GoalsAndMoreActionsNeverHurt) {
    for (int shape = 0; shape < 8; ++shape) {
        testing::Draws draws(static_cast<uint64_t>(shape));
        const int P = 2 + draws.below(3);
        const ScheduleRequest request{.size = {P, 2, 2 * P}, .costs = testing::random_costs(2 * P, draws)};
        const auto search = [&](VGoal goal, int64_t most_actions) {
            return search_v(request, {.most = 2 * P - 1, .goal = goal, .most_actions = most_actions});
        };
        const VRun shortest = search(VGoal::Makespan, 50000), narrowest = search(VGoal::Span, 50000);
        EXPECT_LE(shortest.makespan, narrowest.makespan);
        EXPECT_LE(narrowest.span, shortest.span);
        EXPECT_LE(shortest.makespan, search(VGoal::Makespan, 1).makespan);
        EXPECT_EQ(shortest.actions, search(VGoal::Makespan, 50000).actions);
    }
}

TEST(VMemoryLimit, CountsStageActivations) {
    const auto most = [](std::optional<double> limit) {
        return v_memory_limit({.size = {4, 2, 8}, .memory_limit = limit}, "X");
    };
    EXPECT_EQ(most({}), 8);
    EXPECT_EQ(most(1), 2);
    EXPECT_EQ(most(1.49), 2);
    EXPECT_EQ(most(1.5), 3);
    EXPECT_EQ(most(1e300), 24);
    EXPECT_EQ(most(std::numeric_limits<double>::infinity()), 24);
    EXPECT_CONTAINS(testing::error_text(ErrorKind::Plan, [&] { most(0.99); }),
                    "X cannot keep to memory_limit (got 0.99");
}

}  // namespace
}  // namespace vpp
