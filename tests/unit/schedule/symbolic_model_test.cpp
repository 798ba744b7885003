#include "schedule/symbolic_model.hpp"

#include "unit/schedule/support.hpp"

namespace vpp {
namespace {

using testing::error_text;

/// One op for each stage, all on top of each other: op k uses value k-1 and parameter `parameters[k]`.
SymbolicModel tower(const std::vector<int>& parameters) {
    SymbolicModel model;
    for (size_t k = 0; k < parameters.size(); ++k) {
        model.first_op.push_back(static_cast<int>(k));
        SymbolicOp op;
        if (k > 0) op.inputs = {static_cast<int>(k) - 1};
        op.parameter = parameters[k];
        model.ops.push_back(op);
    }
    return finish(model);
}

TEST(SymbolicModel, EdgesOfATower) {
    const SymbolicModel model = tower({0, 1, 2});
    ASSERT_EQ(model.edges.size(), 2U);
    EXPECT_EQ(model.edges[1].value, 1);
    EXPECT_EQ(model.edges[1].edge.producer, 1);
    EXPECT_EQ(model.edges[1].edge.consumer, 2);
    EXPECT_TRUE(model.edges[1].edge.has_gradient);
    EXPECT_EQ(model.owner, (std::vector<int>{0, 1, 2}));
    EXPECT_EQ(model.stage_of(2), 2);
    EXPECT_EQ(model.end_op(1), 2);
}

TEST(SymbolicModel, TiedGradientsTravelFromTheLastUserBack) {
    const SymbolicModel model = tower({0, 1, 0, 0});
    EXPECT_EQ(model.owner, (std::vector<int>{0, 1}));
    ASSERT_EQ(model.edges.size(), 5U);
    const ScheduleEdge first = model.edges[3].edge, second = model.edges[4].edge;
    EXPECT_TRUE(first.tied && second.tied);
    EXPECT_EQ(first.producer, 0);
    EXPECT_EQ(first.consumer, 2);
    EXPECT_EQ(first.gradient_to, 0);
    EXPECT_EQ(second.consumer, 3);
    EXPECT_EQ(second.gradient_to, 2);
}

TEST(SymbolicModel, ValuesBeforeTheFirstParameterHaveNoGradient) {
    const SymbolicModel model = tower({-1, -1, 0});
    EXPECT_EQ(model.is_trained, (std::vector<bool>{false, false, true}));
    EXPECT_FALSE(model.edges[0].edge.has_gradient);
}

TEST(SymbolicModel, AnOpUsesEarlierValues) {
    SymbolicModel model = tower({0});
    model.ops[0].inputs = {0};
    EXPECT_CONTAINS(error_text(ErrorKind::Bug, [&] { finish(model); }), "an op uses earlier values");
}

TEST(SymbolicModel, SegmentsAreAscendingAndInsideAStage) {
    const auto refusal = [](std::vector<SymbolicSegment> segments) {
        SymbolicModel model;
        model.ops = {{{}, 0}, {{0}, 1}, {{1}, 2}, {{2}, 3}};
        model.first_op = {0, 2};
        model.segments = std::move(segments);
        return error_text(ErrorKind::Bug, [&] { finish(model); });
    };
    EXPECT_CONTAINS(refusal({{1, 3}}), "a segment ends before the next cut");
    EXPECT_CONTAINS(refusal({{2, 4}, {0, 1}}), "segments are ascending");
    EXPECT_CONTAINS(refusal({{0, 2}, {1, 2}}), "segments are ascending");
    EXPECT_CONTAINS(refusal({{1, 1}}), "segments are ascending and not empty");
    EXPECT_CONTAINS(refusal({{3, 5}}), "a segment ends before the next cut");
    SymbolicModel model;
    model.ops = {{{}, 0}, {{0}, 1}, {{1}, 2}, {{2}, 3}};
    model.first_op = {0, 2};
    model.segments = {{1, 2}, {2, 4}};
    EXPECT_EQ(finish(model).segment_of, (std::vector<int>{-1, 0, 1, 1}));
}

// What the random models must not leave out.
TEST(RandomModel, HasAllThatMatters) {
    int skips = 0, chains = 0, tied = 0, untrained = 0, recomputed = 0, repeated = 0, random = 0, buffers = 0;
    for (uint64_t seed = 0; seed < 200; ++seed) {
        const SymbolicModel model = make_random_model(4, seed);
        ASSERT_EQ(model.num_stages(), 4);
        ASSERT_NO_THROW(routes_of(model.schedule_edges(), 4, false));
        for (const SymbolicEdge& edge : model.edges) {
            skips += !edge.edge.tied && edge.edge.consumer > edge.edge.producer + 1;
            chains += edge.edge.gradient_to != edge.edge.producer;
            tied += edge.edge.tied;
            untrained += !edge.edge.has_gradient;
        }
        recomputed += static_cast<int>(model.segments.size());
        for (const SymbolicOp& op : model.ops) {
            repeated += op.inputs.size() > 1 && op.inputs[0] == op.inputs[1];
            random += op.random;
            buffers += op.has_buffer;
        }
        EXPECT_TRUE(model.is_trained.back());
    }
    for (int count : {skips, chains, tied, untrained, recomputed, repeated, random, buffers}) EXPECT_GT(count, 50);
}

TEST(RandomModel, IsAFunctionOfItsSeed) {
    EXPECT_EQ(make_random_model(3, 5).schedule_edges().size(), make_random_model(3, 5).schedule_edges().size());
    EXPECT_EQ(make_random_model(3, 5).ops[2].inputs, make_random_model(3, 5).ops[2].inputs);
    for (uint64_t seed = 0; seed < 50; ++seed) {
        for (const SymbolicEdge& edge : make_random_model(4, seed, {.most_ops_per_stage = 3, .tied = false}).edges) {
            EXPECT_FALSE(edge.edge.tied);
        }
    }
}

}  // namespace
}  // namespace vpp
