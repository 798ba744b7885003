#include "schedule/memory.hpp"

#include <algorithm>

#include "schedule/generators.hpp"
#include "unit/schedule/support.hpp"

namespace vpp {
namespace {

using testing::error_text;
using enum ActionKind;
using Rows = std::vector<std::vector<int64_t>>;

Schedule on_one_rank(std::vector<Action> list, std::vector<int> rank_of_stage = {0}, int num_microbatches = 1) {
    return {"X", 1, num_microbatches, std::move(rank_of_stage), {std::move(list)}};
}

// In units of stage activations it is the number in flight, for every schedule.
TEST(PeakMemory, CountsActivationsByDefault) {
    for (const ScheduleKind& kind : schedule_kinds()) {
        for (int P : {1, 2, 4}) {
            for (int v : {kind.fewest_per_rank, std::min(kind.most_per_rank, kind.fewest_per_rank + 1)}) {
                Schedule compute;
                try {
                    compute = make_schedule(kind.name, P, v, 2 * P);
                } catch (const Error&) {
                    continue;  // a size that the schedule cannot take
                }
                const std::vector<ScheduleEdge> edges = chain_edges(P * v);
                const Schedule lowered = lower(compute, edges);
                const std::vector<int> expected = peak_in_flight(lowered);
                EXPECT_EQ(peak_memory(lowered, edges), std::vector<int64_t>(expected.begin(), expected.end()))
                    << kind.name << " " << P << " " << v;
            }
        }
    }
}

TEST(MemoryByAction, InputGradientLeavesPartOfTheActivation) {
    const MemoryModel model{{{.activation = 10, .weight_part = 4, .gradient_buffer = 3, .fixed = 100}}, {}};
    EXPECT_EQ(memory_by_action(on_one_rank({{F, 0, 0}, {I, 0, 0}, {W, 0, 0}, {ReduceGrad, 0}}), {}, model),
              (Rows{{110, 113, 107, 100}}));
    EXPECT_EQ(memory_by_action(on_one_rank({{F, 0, 0}, {B, 0, 0}, {ReduceGrad, 0}}), {}, model),
              (Rows{{110, 113, 100}}));
}

TEST(MemoryByAction, WhatIsThereOnlyWhileAnActionRuns) {
    const MemoryModel model{{{.activation = 10, .weight_part = 4, .extra_in_forward = 2, .extra_in_weight = 5}}, {}};
    EXPECT_EQ(memory_by_action(on_one_rank({{F, 0, 0}, {I, 0, 0}, {W, 0, 0}, {ReduceGrad, 0}}), {}, model),
              (Rows{{12, 10, 9, 0}}));
}

TEST(MemoryByAction, SumsOfWeightGradientsStayFromTheFirstOn) {
    const MemoryModel model{{{.sums = 7}}, {}};
    EXPECT_EQ(memory_by_action(on_one_rank({{F, 0, 0}, {B, 0, 0}, {F, 0, 1}, {B, 0, 1}}, {0}, 2), {}, model),
              (Rows{{1, 8, 8, 8}}));
    EXPECT_EQ(memory_by_action(on_one_rank({{F, 0, 0}, {I, 0, 0}, {W, 0, 0}, {ReduceGrad, 0}}), {}, model),
              (Rows{{1, 1, 8, 7}}));
}

TEST(MemoryByAction, PostedReceivesHaveTheirBuffers) {
    const Schedule lowered = lower(make_schedule("GPIPE", 2, 1, 3), chain_edges(2));
    MemoryModel model{{}, {{0, 10}}};
    // rank 1: RECV_F 1F0 RECV_F 1F1 RECV_F 1F2 1B0 SEND_B 1B1 SEND_B 1B2 SEND_B
    EXPECT_EQ(memory_by_action(lowered, chain_edges(2), model)[1],
              (std::vector<int64_t>{10, 11, 11, 12, 12, 13, 3, 2, 2, 1, 1, 0}));
    model.buffers.receives_ahead = 2;
    EXPECT_EQ(memory_by_action(lowered, chain_edges(2), model)[1],
              (std::vector<int64_t>{20, 31, 21, 22, 12, 13, 3, 2, 2, 1, 1, 0}));
}

TEST(MemoryByAction, ReceivedMessagesWaitForTheirAction) {
    const Schedule lowered = lower(make_schedule("1F1B", 2, 1, 1), chain_edges(2));
    // 0F0 SEND_F RECV_B 0B0; RECV_F 1F0 1B0 SEND_B
    EXPECT_EQ(memory_by_action(lowered, chain_edges(2), {{}, {{0, 5}}}), (Rows{{1, 1, 6, 6}, {5, 6, 1, 0}}));
}

TEST(MemoryByAction, GradientsHandedOverOnARankWaitToo) {
    const Schedule turn = on_one_rank({{F, 0, 0}, {F, 1, 0}, {B, 1, 0}, {B, 0, 0}}, {0, 0});
    EXPECT_EQ(memory_by_action(turn, chain_edges(2), {{}, {{0, 5}}}), (Rows{{1, 2, 2, 6}}));
    const std::vector<ScheduleEdge> tied{{0, 0, 1, true, 0, true}};
    const Schedule split =
        on_one_rank({{F, 0, 0}, {F, 1, 0}, {I, 1, 0}, {W, 1, 0}, {I, 0, 0}, {W, 0, 0}, {ReduceGrad, 0}}, {0, 0});
    EXPECT_EQ(memory_by_action(split, tied, {{}, {{0, 5}}}), (Rows{{1, 2, 2, 2, 6, 6, 0}}));
}

TEST(MemoryByAction, ResultsWaitForTheirTurn) {
    const MemoryModel model{{{.weight_gradient = 7}}, {}};
    const Schedule descending =
        on_one_rank({{F, 0, 0}, {F, 0, 1}, {F, 0, 2}, {B, 0, 2}, {B, 0, 1}, {B, 0, 0}, {ReduceGrad, 0}}, {0}, 3);
    EXPECT_EQ(memory_by_action(descending, {}, model), (Rows{{1, 2, 3, 3, 2 + 7, 1 + 14, 0}}));
    const Schedule ascending = on_one_rank({{F, 0, 0}, {F, 0, 1}, {B, 0, 0}, {B, 0, 1}, {ReduceGrad, 0}}, {0}, 2);
    EXPECT_EQ(memory_by_action(ascending, {}, model), (Rows{{1, 2, 2, 1, 0}}));
}

TEST(MemoryByAction, HalvesOfAPairHoldWhatBothNeed) {
    Schedule schedule = on_one_rank({{F, 0, 0}, {B, 0, 0}, {F, 0, 1}, {B, 0, 1}}, {0}, 2);
    EXPECT_EQ(memory_by_action(schedule, {}), (Rows{{1, 1, 1, 1}}));
    schedule.actions[0][1].paired = true;
    EXPECT_EQ(memory_by_action(schedule, {}), (Rows{{1, 2, 2, 1}}));
}

// GPipe with a slow second rank: values pile up in front of it, sent at 1, 2 and 3 while it computes for 10 each.
TEST(MemoryByAction, MessagesThatComeEarlyHaveTheirBuffers) {
    ScheduleCosts costs;
    costs.stages = {{1, 2, 1, 1}, {10, 20, 1, 1}};
    const Schedule lowered = lower(make_schedule("GPIPE", 2, 1, 3), chain_edges(2));
    const Simulation simulation = simulate(lowered, costs);
    const MemoryModel model{{}, {{0, 100}}};
    // RECV F RECV F RECV F, then B SEND three times; F0 runs from 1 to 11.
    EXPECT_EQ(memory_by_action(lowered, chain_edges(2), model)[1],
              (std::vector<int64_t>{100, 101, 101, 102, 102, 103, 3, 2, 2, 1, 1, 0}));
    EXPECT_EQ(memory_by_action(lowered, chain_edges(2), model, &simulation)[1],
              (std::vector<int64_t>{100, 301, 201, 202, 102, 103, 3, 2, 2, 1, 1, 0}));
    // Gradients come when rank 0 waits for them: nothing is early there.
    EXPECT_EQ(memory_by_action(lowered, chain_edges(2), model, &simulation)[0],
              memory_by_action(lowered, chain_edges(2), model)[0]);
}

TEST(MemoryByAction, ForwardsOnlyKeepNothing) {
    const Schedule lowered = lower(make_schedule("FORWARD_ONLY", 2, 1, 3), chain_edges(2));
    EXPECT_EQ(peak_memory(lowered, chain_edges(2), {{}, {{0, 5}}}), (std::vector<int64_t>{1, 6}));
}

// Every buffer that is taken is given back.
TEST(MemoryByAction, NothingIsLeftAtTheEnd) {
    for (uint64_t seed = 0; seed < 100; ++seed) {
        std::vector<ScheduleEdge> edges = testing::random_edges(4, seed);
        const bool reversed = seed % 2 == 0;
        Schedule compute = seed % 3 ? make_schedule("INTERLEAVED_1F1B", 2, 2, 3) : make_schedule("GPIPE", 4, 1, 3);
        if (reversed && seed % 3 == 0) {
            for (std::vector<Action>& list : compute.actions) std::reverse(list.begin() + 3, list.end());
        }
        Schedule lowered = lower(compute, edges);
        MemoryModel model{{4, {.activation = 9, .weight_part = 4, .gradient_buffer = 2, .weight_gradient = 5}}, {}};
        for (const ScheduleEdge& edge : edges) model.bytes_of_edge[edge.id] = 10 + edge.id;
        for (int rank = 0; rank < lowered.num_ranks; ++rank) {
            lowered.actions[static_cast<size_t>(rank)].push_back({ReduceGrad, lowered.stages_of(rank).front()});
        }
        for (const std::vector<int64_t>& during : memory_by_action(lowered, edges, model)) {
            EXPECT_EQ(during.back(), 0);
            EXPECT_GE(*std::min_element(during.begin(), during.end()), 0);
        }
    }
}

TEST(MemoryByAction, EveryStageHasAModel) {
    const MemoryModel model{{3, StageMemory{}}, {}};
    EXPECT_CONTAINS(error_text(ErrorKind::Bug, [&] { memory_by_action(on_one_rank({}), {}, model); }), "every stage");
}

}  // namespace
}  // namespace vpp
