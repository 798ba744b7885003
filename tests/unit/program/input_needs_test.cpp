#include "program/input_needs.hpp"

#include <gtest/gtest.h>

#include "schedule/generators.hpp"
#include "schedule/lowering.hpp"
#include "unit/graph/graphs.hpp"

namespace vpp {
namespace {

/// Rank 0 has stages 0 and 2, which take "x"; rank 1 has stages 1 and 3, and stage 3 takes "y". A microbatch of two
/// samples has 32 bytes of x and 16 of y.
Program program_with_inputs(int num_microbatches) {
    test::GraphMaker maker;
    const int x = maker.input("x"), y = maker.input("y");
    int value = maker.op("", {x});
    value = maker.op("", {value});
    value = maker.op("", {value, x});
    maker.op("", {value, y});
    Program program;
    program.mesh = {2, 1, 1};
    program.microbatch_size = 2;
    program.fields.fields = {{"y", DType::F32, {2}}, {"x", DType::F32, {4}}};
    program.training.graph = maker.finish();
    program.training.split = make_stages(program.training.graph, {1, 2, 3});
    program.training.schedule =
        lower(make_schedule("INTERLEAVED_1F1B", 2, 2, num_microbatches), schedule_edges(program.training.split));
    return program;
}

TEST(InputNeeds, StandInTheOrderOfTheForwardPasses) {
    const Program program = program_with_inputs(2);
    const std::vector<InputNeed> both{{0, 0, 0, 0}, {0, 0, 1, 0}};
    std::vector<InputNeed> twice = both;
    twice.insert(twice.end(), both.begin(), both.end());
    EXPECT_EQ(needs_of_step({}, program, 0, 0), twice) << "stage 0, then stage 2";
    EXPECT_EQ(needs_of_step({}, program, 1, 0), (std::vector<InputNeed>{{0, 0, 0, 1}, {0, 0, 1, 1}}));
}

TEST(InputNeeds, ABackwardNeedsNone) {
    Program program = program_with_inputs(2);
    const std::vector<InputNeed> needs = needs_of_step({}, program, 0, 0);
    for (std::vector<Action>& list : program.training.schedule.actions) {
        std::erase_if(list, [](const Action& action) { return action.kind == ActionKind::B; });
    }
    EXPECT_EQ(needs_of_step({}, program, 0, 0), needs);
}

TEST(InputNeeds, TheLastReplicaOfARankComesFirst) {
    Program program = program_with_inputs(2);
    program.replicas_per_rank = 2;
    EXPECT_EQ(needs_of_step({}, program, 1, 0),
              (std::vector<InputNeed>{{0, 1, 0, 1}, {0, 1, 1, 1}, {0, 0, 0, 1}, {0, 0, 1, 1}}));
    program.replicas_per_rank = 1;
    EXPECT_EQ(needs_of_step({}, program, 1, 3), (std::vector<InputNeed>{{0, 3, 0, 1}, {0, 3, 1, 1}}));
}

TEST(InputNeeds, TargetsThatAreCountedComeBeforeAStepAndBehindAnEvaluation) {
    Program program = program_with_inputs(2);
    Graph& graph = program.training.graph;
    GraphOp& loss = graph.ops.back();
    loss.kind = "aten::nll_loss";
    loss.ignored_targets = {-100};
    graph.tensors[static_cast<size_t>(graph.values[static_cast<size_t>(loss.inputs[1])].tensors[0])].dtype = DType::I64;
    program.mesh.dp = 2;
    program.evaluation = program.training;
    Plan plan;
    const std::vector<InputNeed> own{{0, 1, 0, 1}, {0, 1, 1, 1}};
    EXPECT_EQ(needs_of_step(plan, program, 1, 1), own);
    plan.model.loss_reduction = "target_mean";
    EXPECT_EQ(needs_of_step(plan, program, 1, 1),
              (std::vector<InputNeed>{{0, 0, 0, 1}, {0, 0, 1, 1}, own[0], own[1], own[0], own[1]}))
        << "of all replicas";
    EXPECT_EQ(needs_of_step(plan, program, 0, 1), needs_of_step({}, program, 0, 1)) << "it makes no losses";
    EXPECT_EQ(needs_of_group(plan, program, 1, 1), (std::vector<InputNeed>{own[0], own[1], own[0], own[1]}));
    EXPECT_EQ(needs_of_group({}, program, 1, 1), own);
}

TEST(InputNeeds, AsManyAreReadAheadAsFit) {
    const Program program = program_with_inputs(4);
    EXPECT_EQ(bytes_of_input(program, program.training.graph, 0), 32);
    EXPECT_EQ(bytes_of_input(program, program.training.graph, 1), 16);
    const std::vector<InputNeed> needs = needs_of_step({}, program, 0, 0);
    ASSERT_EQ(needs.size(), 8U);
    EXPECT_EQ(num_inputs_ahead(program, program.training.graph, needs, 0), 0U);
    EXPECT_EQ(num_inputs_ahead(program, program.training.graph, needs, 1), 1U) << "those of a forward pass";
    EXPECT_EQ(num_inputs_ahead(program, program.training.graph, needs, 32 * 3 - 1), 2U);
    EXPECT_EQ(num_inputs_ahead(program, program.training.graph, needs, 32 * 3), 3U);
    EXPECT_EQ(num_inputs_ahead(program, program.training.graph, needs, 1 << 20), 8U) << "a step";
    EXPECT_EQ(num_inputs_ahead(program, program.training.graph, {}, 1 << 20), 0U);
}

TEST(InputNeeds, InputsOfDifferentSizesCountWhereTheyLieWorst) {
    const Program program = program_with_inputs(4);
    const std::vector<InputNeed> needs{{0, 0, 0, 0}, {0, 0, 0, 1}, {0, 0, 1, 0}, {0, 0, 1, 1}};
    EXPECT_EQ(largest_run_bytes(program, program.training.graph, needs, 0), 0);
    EXPECT_EQ(largest_run_bytes(program, program.training.graph, needs, 1), 32);
    EXPECT_EQ(largest_run_bytes(program, program.training.graph, needs, 2), 48);
    EXPECT_EQ(largest_run_bytes(program, program.training.graph, needs, 3), 80) << "x, y and the next x";
    EXPECT_EQ(num_inputs_ahead(program, program.training.graph, needs, 79), 2U);
    EXPECT_EQ(num_inputs_ahead(program, program.training.graph, needs, 80), 3U);
    EXPECT_EQ(num_inputs_ahead(program, program.training.graph, needs, 1), 2U) << "a forward pass takes both";
}

}  // namespace
}  // namespace vpp
