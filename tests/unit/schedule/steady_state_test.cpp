#include "schedule/steady_state.hpp"

#include <algorithm>

#include "schedule/generators.hpp"
#include "schedule/order_search.hpp"
#include "schedule/search_seeds.hpp"
#include "unit/schedule/every_order.hpp"

namespace vpp {
namespace {

using testing::prove;
using testing::random_costs;
using testing::texts;

TEST(Lengthen, RepeatsABlockByHand) {
    const Schedule shorter = make_schedule("1F1B", 2, 1, 3);
    EXPECT_EQ(texts(shorter), (std::vector<std::string>{"0F0 0F1 0B0 0F2 0B1 0B2", "1F0 1B0 1F1 1B1 1F2 1B2"}));
    const SteadyBlock block{1, {{{1, 0, 0}}, {{0, 0, 0}}}};  // begins when stage 0 has done 0F0
    const Schedule longer = lengthen(shorter, block, 2);
    EXPECT_EQ(longer.num_microbatches, 5);
    EXPECT_EQ(texts(longer), (std::vector<std::string>{"0F0 0F1 0B0 0F2 0B1 0F3 0B2 0F4 0B3 0B4",
                                                       "1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3 1F4 1B4"}));
    EXPECT_EQ(lengthen(shorter, block, 0).actions, shorter.actions);
}

// W that are late in the list but belong to the block come into it, and what was before them and does not, behind it.
TEST(Lengthen, ABlockNeedNotStandSideBySide) {
    const Schedule shorter{"X",
                           1,
                           2,
                           {0},
                           {{{ActionKind::F, 0, 0},
                             {ActionKind::F, 0, 1},
                             {ActionKind::I, 0, 0},
                             {ActionKind::I, 0, 1},
                             {ActionKind::W, 0, 0},
                             {ActionKind::W, 0, 1}}}};
    EXPECT_EQ(texts(lengthen(shorter, {1, {{{1, 0, 0}}}}, 1))[0], "0F0 0F1 0I0 0W0 0F2 0I1 0W1 0I2 0W2");
}

// The steady state of a generator is what makes its longer schedule.
TEST(FindSteadyBlocks, OneOfThemMakesTheGeneratorsOwnLongerSchedule) {
    const auto is_among = [](const char* name, int P, int v, int few, int all) {
        const Schedule shorter = make_schedule(name, P, v, few), longer = make_schedule(name, P, v, all);
        const std::vector<SteadyBlock> blocks = find_steady_blocks(shorter, all - few, {});
        return std::any_of(blocks.begin(), blocks.end(), [&](const SteadyBlock& block) {
            return lengthen(shorter, block, (all - few) / block.period).actions == longer.actions;
        });
    };
    EXPECT_TRUE(is_among("1F1B", 4, 1, 12, 40));
    EXPECT_TRUE(is_among("ZERO_BUBBLE_H1", 4, 1, 12, 33));
    EXPECT_TRUE(is_among("INTERLEAVED_1F1B", 3, 2, 12, 48));
    EXPECT_TRUE(is_among("INTERLEAVED_ZERO_BUBBLE", 2, 3, 12, 32));
    EXPECT_FALSE(is_among("GPIPE", 4, 1, 12, 40));
}

TEST(FindSteadyBlocks, PeriodsDivideWhatIsAdded) {
    const Schedule shorter = make_schedule("1F1B", 2, 1, 9);
    for (const SteadyBlock& block : find_steady_blocks(shorter, 6, {})) {
        EXPECT_EQ(6 % block.period, 0);
        EXPECT_LE(block.period, 4);
        for (const std::array<int, 3>& done : block.done) EXPECT_LE(done[0] + block.period, 9);
    }
    Schedule mixed = make_schedule("1F1B", 1, 1, 2);
    mixed.actions[0] = {{ActionKind::F, 0, 0},
                        {ActionKind::B, 0, 0},
                        {ActionKind::F, 0, 1},
                        {ActionKind::I, 0, 1},
                        {ActionKind::W, 0, 1}};
    EXPECT_TRUE(find_steady_blocks(mixed, 4, {}).empty());
}

// Any order, shuffled by a search at random costs: all longer forms are proven, and each stage's order is ascending.
TEST(FindSteadyBlocks, EveryLongerFormIsASoundSchedule) {
    int num_proved = 0;
    for (const auto& [name, P, v] : {std::tuple{"INTERLEAVED_ZERO_BUBBLE", 3, 2}, {"1F1B", 4, 1}, {"V_HALF", 2, 2}}) {
        for (uint64_t seed = 0; seed < 4; ++seed) {
            const ScheduleCosts costs = random_costs(P * v, seed);
            const Schedule start = split_all(make_schedule(name, P, v, 8));
            const OrderGraph graph = make_order_graph(start, costs);
            const int most_held = 8 * v;
            Draws draws(seed);
            const FoundOrder order = search_order(graph, nodes_of(graph, start),
                                                  {.most_held = most_held, .moves = 3000, .temperature = 999}, draws);
            const Schedule shorter = schedule_of(graph, order.lists);
            for (const SteadyBlock& block : find_steady_blocks(shorter, 12, costs)) {
                const Schedule longer = lengthen(shorter, block, 12 / block.period);
                ASSERT_NO_THROW(prove(longer, costs)) << name << ", seed " << seed << ", period " << block.period;
                const OrderGraph long_graph = make_order_graph(longer, costs);
                ASSERT_NO_THROW(
                    IncrementalSimulator(long_graph, nodes_of(long_graph, longer), SearchObjective::Makespan, 20 * v));
                ++num_proved;
            }
        }
    }
    EXPECT_GT(num_proved, 100);
}

}  // namespace
}  // namespace vpp
