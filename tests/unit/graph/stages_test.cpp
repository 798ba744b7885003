// Stages and edges of graphs made by hand.
#include "graph/stages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <set>

#include "base/error.hpp"
#include "unit/graph/graphs.hpp"

namespace vpp {
namespace {

using test::chain;
using test::GraphMaker;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// "v3 0>2 grad 1": tensor edge of v3 from stage 0 to 2, its gradient goes to 1.
std::vector<std::string> texts_of(const Split& split) {
    std::vector<std::string> texts;
    for (const Edge& edge : split.edges) {
        texts.push_back(edge.name + " " + std::to_string(edge.producer) + ">" + std::to_string(edge.consumer) +
                        (edge.has_gradient ? " grad " + std::to_string(edge.gradient_to) : ""));
    }
    return texts;
}

void expect_bug(const std::function<void()>& call) {
    try {
        call();
        ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::Bug);
    }
}

TEST(Stages, AChainHasOneEdgeACut) {
    const Split split = make_stages(chain({1, 2, 3, 4}), {1, 3});
    ASSERT_THAT(split.stages, SizeIs(3));
    EXPECT_EQ(split.stages[1].ops.begin, 1);
    EXPECT_EQ(split.stages[1].ops.end, 3);
    EXPECT_EQ(split.stages[1].flops, 5);
    EXPECT_THAT(texts_of(split), ElementsAre("v1 0>1 grad 0", "v3 1>2 grad 1"));
    EXPECT_EQ(split.loss_stage, 2);
    EXPECT_EQ(split.edges[1].id, 1);
    EXPECT_EQ(split.edges[0].bytes, 32);
    EXPECT_EQ(split.stage_of_op(0), 0);
    EXPECT_EQ(split.stage_of_op(1), 1);
    EXPECT_EQ(split.stage_of_op(3), 2);
    EXPECT_THAT(make_stages(chain({1, 2}), {}).edges, IsEmpty());
}

TEST(Stages, OpsParametersAndBytesAreCoveredExactly) {
    GraphMaker maker;
    int x = maker.input("x");
    std::vector<int> weights;
    for (int i = 0; i < 6; ++i) weights.push_back(maker.parameter("w" + std::to_string(i), i + 1, true));
    maker.parameter("unused", 50);
    const int statistics = maker.parameter("statistics", 7, false, true);
    for (int weight : weights) x = maker.op("", {x, weight});
    maker.op("", {x, statistics});
    const Graph graph = maker.finish();
    for (int first = 1; first < 6; ++first) {
        for (int second = first + 1; second < 7; ++second) {
            const Split split = make_stages(graph, {first, second});
            std::multiset<int> owned;
            int ops = 0;
            int64_t num_parameters = 0, buffer_bytes = 0;
            for (const StageSpec& stage : split.stages) {
                owned.insert(stage.parameters.begin(), stage.parameters.end());
                ops += stage.ops.end - stage.ops.begin;
                num_parameters += stage.num_parameters;
                buffer_bytes += stage.buffer_bytes;
            }
            EXPECT_THAT(owned, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
            EXPECT_EQ(ops, 7);
            EXPECT_EQ(num_parameters, 21 + 50);
            EXPECT_EQ(buffer_bytes, 28);
            EXPECT_THAT(split.stages[0].parameters, ::testing::Contains(6)) << "the unused one";
        }
    }
}

TEST(Stages, ASkipGoesStraightToItsConsumer) {
    GraphMaker maker;
    const int a = maker.op("", {maker.input("x")});  // v1, stage 0
    const int b = maker.op("", {a});                 // v2, stage 1
    maker.op("", {b, a});                            // stage 2
    EXPECT_THAT(texts_of(make_stages(maker.finish(), {1, 2})),
                ElementsAre("v1 0>1 grad 0", "v1 0>2 grad 1", "v2 1>2 grad 1"));
}

TEST(Stages, AGradientGoesBackToTheStageThatWroteATrainedValue) {
    GraphMaker maker;
    const int board = maker.op("", {maker.input("x")});  // v1, stage 0
    const int h = maker.op("", {board});                 // v2, stage 1
    const int after = maker.write_trained("", board);    // stage 2
    const int k = maker.op("", {after, h});              // stage 2
    maker.op("", {k, after});                            // stage 3
    EXPECT_THAT(texts_of(make_stages(maker.finish(), {1, 2, 4})),
                ElementsAre("v1 0>1", "v1 0>2", "v1 2>3 grad 2", "v2 1>2 grad 1", "v4 2>3 grad 2"));
}

TEST(Stages, TheGradientOfSeveralConsumersGoesBackOneByOne) {
    GraphMaker maker;
    const int a = maker.op("", {maker.input("x")});  // stage 0
    const int b = maker.op("", {a});                 // stage 1
    const int c = maker.op("", {b});                 // stage 2, does not use a
    const int d = maker.op("", {c, a});              // stage 3
    maker.op("", {d, a});                            // stage 4
    const Split split = make_stages(maker.finish(), {1, 2, 3, 4});
    EXPECT_THAT(texts_of(split), ElementsAre("v1 0>1 grad 0", "v1 0>3 grad 1", "v1 0>4 grad 3", "v2 1>2 grad 1",
                                             "v3 2>3 grad 2", "v4 3>4 grad 3"));
    const std::vector<ScheduleEdge> edges = schedule_edges(split);
    ASSERT_THAT(edges, SizeIs(6));
    EXPECT_EQ(edges[2].id, 2);
    EXPECT_EQ(edges[2].producer, 0);
    EXPECT_EQ(edges[2].consumer, 4);
    EXPECT_EQ(edges[2].gradient_to, 3);
    EXPECT_TRUE(edges[2].has_gradient);
}

TEST(Stages, AWrittenTensorGoesOnFromItsWriter) {
    GraphMaker maker;
    const int a = maker.op("", {maker.input("x")});  // v1, stage 0
    const int b = maker.write("", a);                // stage 1 writes it
    const int c = maker.op("", {b});                 // stage 2 reads
    maker.op("", {c, b});                            // stage 3 reads
    EXPECT_THAT(texts_of(make_stages(maker.finish(), {1, 2, 3})),
                ElementsAre("v1 0>1 grad 0", "v1 1>2 grad 1", "v1 1>3 grad 2", "v3 2>3 grad 2"));
}

TEST(Stages, AWriteInTheProducersStageChangesNothing) {
    GraphMaker maker;
    const int a = maker.op("", {maker.input("x")});
    const int b = maker.write("", a);
    maker.op("", {b});
    EXPECT_THAT(texts_of(make_stages(maker.finish(), {2})), ElementsAre("v1 0>1 grad 0"));
}

TEST(Stages, ATensorInSeveralValuesIsSentOnce) {
    GraphMaker maker;
    const int a = maker.op("", {maker.input("x")});
    const int list = maker.plain("", {a}, {a});
    maker.op("", {a, list});
    const Split split = make_stages(maker.finish(), {2});
    EXPECT_THAT(texts_of(split), ElementsAre("v1 0>1 grad 0", "1 plain value 0>1"));
    EXPECT_EQ(split.edges[1].tensor, -1);
    EXPECT_THAT(split.edges[1].values, ElementsAre(list));
}

TEST(Stages, PlainValuesOfAPairOfStagesShareOneBundle) {
    GraphMaker maker;
    const int x = maker.input("x");
    const int n = maker.plain("", {x}), m = maker.plain("", {x});
    const int a = maker.op("", {x});
    const int b = maker.op("", {a, n, m});
    maker.op("", {b, m});
    const Split split = make_stages(maker.finish(), {3, 4});
    EXPECT_THAT(texts_of(split),
                ElementsAre("v3 0>1 grad 0", "v4 1>2 grad 1", "2 plain values 0>1", "1 plain value 0>2"));
    EXPECT_THAT(split.edges[2].values, ElementsAre(n, m));
    EXPECT_FALSE(split.edges[2].has_gradient);
    EXPECT_GT(split.edges[2].message_bytes, 0);
}

TEST(Stages, InputsAndConstantBuffersAreReadWhereTheyAreNeeded) {
    GraphMaker maker;
    const int x = maker.input("x"), y = maker.input("y");
    const int table = maker.parameter("table", 4, false, true), frozen = maker.parameter("frozen", 4, false);
    const int a = maker.op("", {x, table});
    const int b = maker.op("", {a, x, frozen});
    maker.op("", {b, y, table, frozen, table});
    const Split split = make_stages(maker.finish(), {1, 2});
    EXPECT_THAT(split.stages[0].inputs, ElementsAre(0));
    EXPECT_THAT(split.stages[1].inputs, ElementsAre(0));
    EXPECT_THAT(split.stages[2].inputs, ElementsAre(1));
    EXPECT_THAT(split.stages[0].parameters, ElementsAre(0));
    EXPECT_THAT(split.stages[1].parameters, ElementsAre(1));
    EXPECT_THAT(split.stages[2].borrowed, ElementsAre(0, 1));
    EXPECT_THAT(texts_of(split), ElementsAre("v4 0>1 grad 0", "v5 1>2 grad 1")) << "no edge for them";
}

TEST(Stages, AWrittenTensorInTwoStagesIsABug) {
    GraphMaker maker;
    const int w = maker.parameter("w", 4, false, true);
    maker.op("", {maker.op("", {maker.input("x"), w}), w});
    Graph graph = maker.finish();
    graph.parameters[0].written = true;
    EXPECT_NO_THROW(make_stages(graph, {}));
    expect_bug([&] { make_stages(graph, {1}); });
}

// The gradient goes from copy to copy, last user first; nothing goes forward.
TEST(Stages, ATiedParameterBelongsToItsFirstUser) {
    GraphMaker maker;
    const int w = maker.parameter("w", 4), other = maker.parameter("other", 4);
    const int a = maker.op("", {maker.input("x"), other});
    const int b = maker.op("", {a, w}), c = maker.op("", {b, other}), d = maker.op("", {c, w});
    maker.op("", {d, w});
    const Split split = make_stages(maker.finish(), {1, 2, 3, 4});
    EXPECT_THAT(split.stages[1].parameters, ElementsAre(0));
    EXPECT_THAT(split.stages[3].borrowed, ElementsAre(0));
    EXPECT_THAT(split.stages[4].borrowed, ElementsAre(0));
    std::vector<std::string> tied;
    for (const ScheduleEdge& edge : schedule_edges(split)) {
        if (!edge.tied) continue;
        EXPECT_EQ(split.edges[static_cast<size_t>(edge.id)].message_bytes, 4 * 4 + 1024);
        tied.push_back(split.edges[static_cast<size_t>(edge.id)].name + " of " + std::to_string(edge.producer) + ": " +
                       std::to_string(edge.consumer) + " to " + std::to_string(edge.gradient_to));
    }
    EXPECT_THAT(tied, ElementsAre("w of 1: 3 to 1", "w of 1: 4 to 3", "other of 0: 2 to 0"));
}

/// "w 1>3 back 1": the ends of an edge as segments.
std::vector<std::string> ends_of(const Split& split) {
    std::vector<std::string> texts;
    for (const Edge& edge : split.edges) {
        texts.push_back(edge.name + " " + std::to_string(edge.segments.producer) + ">" +
                        std::to_string(edge.segments.consumer) + " back " + std::to_string(edge.segments.gradient_to));
    }
    return texts;
}

TEST(Segments, WithoutRecomputeTheyAreTheStages) {
    const Split split = make_stages(chain({1, 2, 3, 4}), {1, 3});
    ASSERT_THAT(split.segments, SizeIs(3));
    EXPECT_EQ(split.segments[1].stage, 1);
    EXPECT_FALSE(split.segments[1].recompute);
    EXPECT_EQ(split.segments[1].activation_bytes, split.stages[1].activation_bytes);
    EXPECT_EQ(split.segments_of(2), (std::pair{2, 3}));
    EXPECT_THAT(ends_of(split), ElementsAre("v1 0>1 back 0", "v3 1>2 back 1"));
}

TEST(Segments, WhatComesToAStageIsKeptOnceWithWhatItsOpsKeep) {
    GraphMaker maker;
    const int x = maker.input("x");
    const int a = maker.op("", {x});
    const int b = maker.op("", {a, x});
    maker.op("", {b, a});
    Graph graph = maker.finish();
    for (GraphOp& op : graph.ops) op.kept_bytes = 1000;
    const Split split = make_stages(graph, {1}, {{1, 2}});
    EXPECT_EQ(split.stages[0].activation_bytes, 1000 + 32) << "x";
    EXPECT_EQ(split.stages[1].activation_bytes, 2 * 1000 + 2 * 32) << "a and x";
    EXPECT_EQ(split.segments[1].activation_bytes, 1000 + 2 * 32);
    EXPECT_EQ(split.segments[1].input_bytes, 2 * 32);
    EXPECT_EQ(split.segments[2].activation_bytes, 1000) << "a is in the stage";
    EXPECT_EQ(split.segments[2].input_bytes, 2 * 32) << "a and b";
}

TEST(Segments, ABackwardWorksWithTheGradientsOfOneOp) {
    GraphMaker maker;
    const int x = maker.input("x"), w = maker.parameter("w", 100), frozen = maker.parameter("f", 1000, false);
    const int a = maker.op("", {x, w, frozen});
    maker.op("", {a, a});
    const Split split = make_stages(maker.finish(), {1});
    EXPECT_EQ(split.segments[0].working_bytes, 400 + 32) << "of the weight and of a";
    EXPECT_EQ(split.segments[1].working_bytes, 3 * 32);
}

// 3 ops keep 100 each; 50 pass behind the first, 250 behind the second and 20 behind the last.
TEST(Segments, AForwardHoldsWhatPassesBesideWhatIsKeptByThen) {
    GraphMaker maker;
    const int a = maker.op("", {maker.input("x")}), b = maker.op("", {a});
    maker.op("", {b});
    Graph graph = maker.finish();
    const std::array<int64_t, 3> passing{50, 250, 20};
    for (size_t i = 0; i < 3; ++i) {
        graph.ops[i].kept_bytes = 100;
        graph.ops[i].passing_bytes = passing[i];
    }
    EXPECT_EQ(make_stages(graph, {}).segments[0].passing_bytes, 150) << "100 of 250 are kept later";
    graph.ops[1].passing_bytes = 60;
    EXPECT_EQ(make_stages(graph, {}).segments[0].passing_bytes, 20);
}

TEST(Segments, FromIToWWaitsWhatTheGradientsOfWeightsNeed) {
    GraphMaker maker;
    const int x = maker.input("x"), w = maker.parameter("w", 4), v = maker.parameter("v", 4);
    const int a = maker.op("", {x, w}), b = maker.op("", {x, v});
    maker.op("", {a, b});
    Graph graph = maker.finish();
    EXPECT_EQ(make_stages(graph, {}).segments[0].waiting_bytes, 32 + 2 * 32) << "x, gradients of a and b";
    graph.ops[1].inner_bytes = 500;
    EXPECT_EQ(make_stages(graph, {}).segments[0].waiting_bytes, 32 + 2 * 32 + 500) << "what is kept inside of b";
}

TEST(Segments, RangesAndWhatLiesBetweenThemFillTheStages) {
    const Split split = make_stages(chain({1, 1, 1, 1, 1, 1}), {3}, {{1, 2}, {3, 6}});
    std::vector<std::string> texts;
    for (const SegmentSpec& segment : split.segments) {
        texts.push_back(std::to_string(segment.stage) + ": " + std::to_string(segment.ops.begin) + ".." +
                        std::to_string(segment.ops.end) + (segment.recompute ? " again" : ""));
    }
    EXPECT_THAT(texts, ElementsAre("0: 0..1", "0: 1..2 again", "0: 2..3", "1: 3..6 again"));
    EXPECT_EQ(split.segment_of_op(2), 2);
    EXPECT_EQ(split.segments_of(0), (std::pair{0, 3}));
    EXPECT_EQ(split.segments[1].input_bytes, 32);
    EXPECT_THAT(schedule_edges(split), SizeIs(1)) << "schedules see the edges between stages";
    EXPECT_EQ(schedule_edges(split)[0].id, 2);
}

// A value enters a stage once and is passed on there; its gradient goes through every segment that uses it.
TEST(Segments, AValueEntersAStageOnce) {
    GraphMaker maker;
    const int w = maker.parameter("w", 4);
    const int a = maker.op("", {maker.input("x"), w});
    const int b = maker.op("", {a}), c = maker.op("", {a, b}), d = maker.op("", {a, c, w});
    maker.op("", {a, d, w});
    const Split split = make_stages(maker.finish(), {2}, {{0, 1}, {2, 3}, {4, 5}});
    EXPECT_THAT(ends_of(split),
                ElementsAre("v2 0>1 back 0", "v2 0>2 back 1", "v2 2>3 back 2", "v2 3>4 back 3", "v3 1>2 back 1",
                            "v4 2>3 back 2", "v5 3>4 back 3", "w 0>3 back 0", "w 0>4 back 3"));
    std::vector<int> ids;
    for (const ScheduleEdge& edge : schedule_edges(split)) ids.push_back(edge.id);
    EXPECT_THAT(ids, ElementsAre(1, 4, 7)) << "the value, the next one, and the tied parameter";
}

TEST(Segments, RangesOverACutAreABug) {
    expect_bug([&] { make_stages(chain({1, 1, 1, 1}), {2}, {{1, 3}}); });
    expect_bug([&] { make_stages(chain({1, 1, 1, 1}), {2}, {{2, 3}, {0, 1}}); });
    expect_bug([&] { make_stages(chain({1, 1, 1, 1}), {2}, {{3, 5}}); });
}

TEST(Stages, EmptyStagesAreABug) {
    const Graph graph = chain({1, 1, 1});
    expect_bug([&] { make_stages(graph, {0}); });
    expect_bug([&] { make_stages(graph, {3}); });
    expect_bug([&] { make_stages(graph, {2, 2}); });
    expect_bug([&] { make_stages(graph, {2, 1}); });
}

TEST(Stages, ALossThatAnEarlierStageMakesStaysThere) {
    GraphMaker maker;
    const int a = maker.op("", {maker.input("x")});
    maker.op("", {a});
    Graph graph = maker.finish();
    graph.loss = a;
    EXPECT_EQ(make_stages(graph, {1}).loss_stage, 0);
}

}  // namespace
}  // namespace vpp
