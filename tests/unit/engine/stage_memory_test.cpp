#include "engine/stage_memory.hpp"

#include <gtest/gtest.h>

#include "schedule/generators.hpp"
#include "schedule/lowering.hpp"

namespace vpp {
namespace {

using enum ActionKind;

/// Two stages on two ranks; each has a trained parameter of 16 bytes, messages take 8.
Phase two_stages(const Schedule& compute) {
    Phase phase;
    for (int s = 0; s < 2; ++s) {
        GraphParameter& parameter = phase.graph.parameters.emplace_back();
        parameter.dtype = DType::F32;
        parameter.shape = {4};
        parameter.requires_grad = true;
        phase.split.stages.emplace_back().parameters = {s};
    }
    Edge edge;
    edge.tensor = 0;
    edge.consumer = 1;
    edge.segments = {0, 1, 0};
    edge.has_gradient = true;
    edge.message_bytes = 8;
    phase.split.edges.push_back(edge);
    phase.schedule = lower(compute, schedule_edges(phase.split));
    return phase;
}

/// What the actions of a kind took: growth while and after, the same for all but the first microbatch.
struct Took {
    int64_t during, left, during_first, left_first;
};

std::vector<ActionMemory> memory_of(const std::vector<Action>& actions, const std::map<ActionKind, Took>& took) {
    std::vector<ActionMemory> memory;
    int64_t now = 1000;
    for (const Action& action : actions) {
        const Took& one = took.contains(action.kind) ? took.at(action.kind) : Took{0, 0, 0, 0};
        const bool first = action.microbatch == 0;
        const int64_t after = now + (first ? one.left_first : one.left);
        memory.push_back({now, now + (first ? one.during_first : one.during), after});
        now = after;
    }
    return memory;
}

// F keeps 100 and needs 10 more; then the message of 8 waits to be sent. I leaves 40 for W beside 20 of gradients, and
// uses up the 8 that came; the first W makes the sums. A message of 500 that comes during one action changes nothing.
TEST(StageMemory, TheFirstStageOfASplitBackward) {
    Schedule compute{"X", 2, 3, {0, 1}, {{}, {}}};
    for (int i = 0; i < 3; ++i) compute.actions[0].push_back({F, 0, i});
    for (int i = 0; i < 3; ++i) {
        compute.actions[0].push_back({I, 0, i});
        compute.actions[0].push_back({W, 0, i});
        compute.actions[1].push_back({F, 1, i});
        compute.actions[1].push_back({B, 1, i});
    }
    const Phase phase = two_stages(compute);
    auto memory = memory_of(phase.schedule.actions[0], {{F, {110, 108, 110, 108}},
                                                        {SendF, {0, -8, 0, -8}},
                                                        {RecvB, {8, 8, 8, 8}},
                                                        {I, {20, -48, 20, -48}},
                                                        {W, {5, -60, 5 + 16, -60 + 16}}});
    memory.front().peak += 500;
    memory.front().after += 500;
    const StageMemory stage = measure_stage(phase, 0, 0, memory);
    EXPECT_EQ(stage.activation, 100);
    EXPECT_EQ(stage.extra_in_forward, 10);
    EXPECT_EQ(stage.gradient_buffer, 20);
    EXPECT_EQ(stage.weight_part, 40);
    EXPECT_EQ(stage.extra_in_weight, 5);
    EXPECT_EQ(stage.sums, 16);
}

// What came is part of the activation from F on: F adds 92 to the message of 8. B makes the message that goes back.
TEST(StageMemory, WhatIsReceivedIsPartOfTheActivation) {
    const Phase phase = two_stages(make_schedule("1F1B", 2, 1, 3));
    const auto memory = memory_of(
        phase.schedule.actions[1],
        {{RecvF, {8, 8, 8, 8}}, {F, {95, 92, 95, 92}}, {B, {30, -92, 30 + 16, -92 + 16}}, {SendB, {0, -8, 0, -8}}});
    const StageMemory stage = measure_stage(phase, 1, 1, memory);
    EXPECT_EQ(stage.activation, 100);
    EXPECT_EQ(stage.extra_in_forward, -5);
    EXPECT_EQ(stage.gradient_buffer, 30);
    const MemoryModel model{{{}, stage}, {{0, 8}}};
    const std::vector<int64_t> simulated = peak_memory(phase.schedule, schedule_edges(phase.split), model);
    EXPECT_EQ(simulated[1], 100 + 30 + 16) << "as the run: 8 + 92 before each B";
}

}  // namespace
}  // namespace vpp
