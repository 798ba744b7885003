// The page of a small program against figures worked out by hand.
#include "program/inspect.hpp"

#include <gmock/gmock.h>

#include "program/estimate.hpp"
#include "schedule/generators.hpp"
#include "schedule/lowering.hpp"
#include "unit/graph/graphs.hpp"

namespace vpp {
namespace {

using ::testing::ElementsAre;

/// Two stages: a (100 trained elements, 300 FLOPs) makes 8 elements, b (50 frozen ones, 100 FLOPs) takes them.
struct Case {
    Plan plan;
    Program program;

    explicit Case(int num_microbatches = 4, const std::string& kind = "1F1B") {
        test::GraphMaker maker;
        maker.modules({"a:Linear", "b:Linear"});
        const int x = maker.input("x"), w = maker.parameter("a.weight", 100);
        const int frozen = maker.parameter("b.weight", 50, false);
        maker.op("b", {maker.op("a", {x, w}, 300, 8), frozen}, 100, 1);
        Phase& training = program.training;
        training.graph = maker.finish();
        training.graph.ops[0].kept_bytes = 32;
        training.graph.ops[1].kept_bytes = 4;
        training.split = make_stages(training.graph, {1});
        training.schedule = lower(make_schedule(kind, 2, 1, num_microbatches), schedule_edges(training.split));
        program.mesh = {2, 1, 1};
        program.costs.stages = {{300, 600, 300, 300}, {100, 200, 100, 100}};
        program.costs.ticks_per_unit = 100;
        plan.mesh.pp = 2;
        plan.mesh.dp = 1;
        plan.pipeline.num_microbatches = num_microbatches;
        plan.pipeline.schedule_type = kind;
        plan.train.global_batch_size = 2 * num_microbatches;
        program.microbatch_size = 2;
    }

    Inspection page(InspectOptions options = {}) const { return inspect_program(plan, program, options); }
};

TEST(Inspect, ADividedBackwardIsHeldAgainstAWholeOneWhereCostsAreMeasured) {
    Case one(4, "ZERO_BUBBLE_H1");
    one.program.costs.stages = {{100, 200, 100, 100}, {100, 200, 100, 100}};
    EXPECT_FALSE(one.page().undivided_makespan) << "estimates";
    one.program.has_measured_costs = true;
    const Inspection even = one.page();
    ASSERT_TRUE(even.undivided_makespan);
    EXPECT_LT(even.makespan, *even.undivided_makespan);
    EXPECT_EQ(even.halves_over_whole, 1);
    for (StageCosts& stage : one.program.costs.stages) stage.weight_gradient *= 3;
    const Inspection dear = one.page();
    EXPECT_GT(dear.makespan, *dear.undivided_makespan);
    EXPECT_EQ(*dear.undivided_makespan, *even.undivided_makespan);
    EXPECT_EQ(dear.halves_over_whole, 2);
    Case whole;
    whole.program.has_measured_costs = true;
    EXPECT_FALSE(whole.page().undivided_makespan) << "1F1B itself";
}

TEST(Inspect, StagesHaveTheirBytesByKindAndShares) {
    const Inspection page = Case().page();
    ASSERT_EQ(page.stages.size(), 2U);
    const InspectedStage &first = page.stages[0], &second = page.stages[1];
    EXPECT_EQ(first.weight_bytes, 400);
    EXPECT_EQ(first.gradient_bytes, 400);
    EXPECT_EQ(first.optimizer_bytes, 800) << "adamw: two states";
    EXPECT_EQ(first.activation_bytes, 32 + 32) << "with the model's input";
    EXPECT_EQ(first.receive_bytes, 32) << "the gradient";
    EXPECT_EQ(second.receive_bytes, 32) << "the value";
    EXPECT_EQ(second.gradient_bytes, 0) << "frozen";
    EXPECT_DOUBLE_EQ(first.flops_share, 0.75);
    EXPECT_DOUBLE_EQ(first.time_share, 0.75);
    EXPECT_EQ(first.modules, "a");
}

TEST(Inspect, RanksHaveWhatTheEstimateHasAndBuffers) {
    const Case with;
    const Inspection page = with.page({.machine = {}, .depth = 2, .buffers = {.receives_ahead = 4}});
    const std::vector<RankEstimate> estimates = estimate_ranks(with.plan, with.program);
    ASSERT_EQ(page.ranks.size(), 2U);
    for (size_t rank = 0; rank < 2; ++rank) {
        EXPECT_GT(page.ranks[rank].receive_bytes, 0);
        EXPECT_EQ(page.ranks[rank].receive_bytes % 32, 0);
        EXPECT_EQ(page.ranks[rank].total_bytes, estimates[rank].total_bytes() + page.ranks[rank].receive_bytes);
        EXPECT_EQ(page.ranks[rank].sent_bytes, 4 * 32);
    }
    EXPECT_GE(page.ranks[1].receive_bytes, with.page().ranks[1].receive_bytes) << "none ahead";
    EXPECT_EQ(page.ranks[0].in_flight, 2);
    EXPECT_EQ(page.ranks[1].in_flight, 1);
    EXPECT_DOUBLE_EQ(page.ranks[0].load, 1.5);
    EXPECT_DOUBLE_EQ(page.ranks[1].load, 0.5);
}

TEST(Inspect, CardsHaveWhatTheirRanksKeepThere) {
    const Machine machine{.cores = 2, .memory_bytes = 1 << 30, .cards = {{"a card", 9, 0, 4096}}};
    Case with;
    with.plan.mesh.device = "auto";
    const Inspection page = with.page({.machine = machine, .depth = 2, .buffers = {}});
    ASSERT_EQ(page.cards.size(), 1U);
    EXPECT_EQ(page.cards[0].num_ranks, 2);
    int64_t kept_bytes = 0;
    for (const InspectedRank& rank : page.ranks) {
        kept_bytes += rank.weight_bytes + rank.gradient_bytes + rank.optimizer_bytes + rank.buffer_bytes +
                      rank.activation_bytes + rank.receive_bytes;
    }
    EXPECT_EQ(page.cards[0].kept_bytes, kept_bytes);
    with.plan.mesh.device = "cpu";
    EXPECT_TRUE(with.page({.machine = machine, .depth = 2, .buffers = {}}).cards.empty());
}

TEST(Inspect, OpsThatAJobOnCardsRunsOnTheHostAreFound) {
    Case with;
    with.program.training.graph.ops[0].kind = "aten::ctc_loss";
    with.program.training.graph.ops[1].kind = "aten::_upsample_bilinear2d_aa";
    with.plan.mesh.device = "cpu";
    EXPECT_TRUE(with.page().host_ops.empty());
    with.plan.mesh.device = "cuda";
    const Inspection page = with.page();
    ASSERT_EQ(page.host_ops.size(), 2U);
    EXPECT_EQ(page.host_ops[0].kind, "aten::ctc_loss");
    EXPECT_EQ(page.host_ops[0].module, "a");
    EXPECT_FALSE(page.host_ops[0].in_backward);
    EXPECT_TRUE(page.host_ops[1].in_backward);
    with.plan.pipeline.forward_only = true;
    EXPECT_EQ(with.page().host_ops.size(), 1U);
}

TEST(Inspect, TheStepIsSimulatedAtTheCosts) {
    const Inspection page = Case().page();
    // Rank 0: F F . B F B F B B, stage 0 costs 3 + 6, stage 1 takes 1 + 2: 4 x 9 and the first trip through stage 1.
    EXPECT_DOUBLE_EQ(page.makespan, 36);
    EXPECT_DOUBLE_EQ(page.bubble, 1 - (36.0 + 12.0) / (2 * 36));
    EXPECT_DOUBLE_EQ(page.ranks[0].busy_share, 1);
    EXPECT_DOUBLE_EQ(page.unit_bubble, 0.2);
    ASSERT_EQ(page.critical_path.stages.size(), 2U);
    EXPECT_DOUBLE_EQ(page.critical_path.stages[0], 1) << "rank 0 is busy all the time";
    EXPECT_DOUBLE_EQ(page.critical_path.stages[1], 0);
    EXPECT_DOUBLE_EQ(page.critical_path.messages, 0);
    EXPECT_DOUBLE_EQ(page.even_makespan, 5 * 6.0) << "M + P - 1 trips of F + B = 6";
}

TEST(Inspect, EdgesAndLinksCountEveryMessage) {
    const Inspection page = Case().page();
    ASSERT_EQ(page.edges.size(), 1U);
    EXPECT_EQ(page.edges[0].bytes, 32);
    EXPECT_EQ(page.edges[0].gradient_to, 0);
    EXPECT_EQ(page.edges[0].type, "float32[8]");
    EXPECT_EQ(page.edges[0].step_bytes, 2 * 4 * 32);
    ASSERT_EQ(page.links.size(), 2U);
    EXPECT_EQ(page.links[0].forward_bytes, 4 * 32);
    EXPECT_EQ(page.links[0].backward_bytes, 0);
    EXPECT_EQ(page.links[1].backward_bytes, 4 * 32);
    EXPECT_EQ(page.links[1].messages, 4);
}

TEST(Inspect, UnitsAreCountedByStage) {
    const Inspection page = Case().page();  // a and b are siblings of one class
    EXPECT_EQ(page.stages[0].whole_units, 1);
    EXPECT_EQ(page.stages[0].cut_units, 0);
}

TEST(Inspect, MoreMicrobatchesAreForecastAsTheyWouldBe) {
    const Inspection page = Case().page();
    ASSERT_EQ(page.more_microbatches.size(), 3U);
    EXPECT_EQ(page.more_microbatches[0].num_microbatches, 8);
    EXPECT_DOUBLE_EQ(page.more_microbatches[0].bubble, Case(8).page().bubble);
    Case custom;
    custom.plan.pipeline.schedule_type = "CUSTOM";
    EXPECT_TRUE(custom.page().more_microbatches.empty());
}

TEST(Inspect, ItIsTheSamePageEveryTime) {
    EXPECT_EQ(Case().page().digest, Case().page().digest);
    EXPECT_EQ(Case().page().modules.size(), 3U);
}

}  // namespace
}  // namespace vpp
