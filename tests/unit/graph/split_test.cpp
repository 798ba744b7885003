// The split methods on graphs made by hand.
#include "graph/split.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/error.hpp"
#include "base/random.hpp"
#include "graph/stages.hpp"
#include "unit/graph/graphs.hpp"

namespace vpp {
namespace {

using test::chain;
using test::GraphMaker;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Plan plan_with_method(const std::string& method, int chunks = 1) {
    Plan plan;
    plan.pipeline.split_method = method;
    plan.pipeline.virtual_chunks = chunks;
    return plan;
}

Plan manual(std::vector<std::string> points, int chunks = 1) {
    Plan plan = plan_with_method("MANUAL", chunks);
    plan.pipeline.split_points = std::move(points);
    for (size_t i = 0; i < plan.pipeline.split_points.size(); ++i) {
        plan.positions["pipeline.split_points[" + std::to_string(i) + "]"] = {"plan.toml", 10 + static_cast<int>(i), 5,
                                                                              ""};
    }
    return plan;
}

std::string plan_error(const std::function<void()>& call) {
    try {
        call();
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::Plan) << error.what();
        return error.what();
    }
    ADD_FAILURE() << "nothing was thrown";
    return "";
}

/// `count` blocks of two ops each, "b.0" to "b.<count - 1>", a root op between them, and a head.
Graph blocks(int count) {
    GraphMaker maker;
    int x = maker.input("x");
    std::vector<std::string> modules{"b:ModuleList"};
    for (int i = 0; i < count; ++i) {
        const std::string name = "b." + std::to_string(i);
        modules.push_back(name + ":Block");
        x = maker.op(name, {maker.op(name, {x}, 10)}, 1);
        x = maker.op("", {x}, 0);
    }
    modules.push_back("head:Norm");
    maker.op("head", {x});
    maker.modules(modules);
    return maker.finish();
}

SplitTimes times_of(std::vector<double> ops) {
    SplitTimes times;
    times.ops = std::move(ops);
    return times;
}

TEST(Split, AutoGoesByTimesNotByFlops) {
    const Graph graph = chain({1, 1, 1, 9});
    const Plan plan = plan_with_method("AUTO");
    const SplitTimes times = times_of({9, 1, 1, 1});
    EXPECT_THAT(find_split(graph, plan, 2, &times), ElementsAre(1));
    EXPECT_THAT(find_split(graph, plan, 2), ElementsAre(3)) << "FLOPs where nothing was measured";
    EXPECT_TRUE(cuts_by_time(plan));
    EXPECT_FALSE(cuts_by_time(plan_with_method("FLOPS")));
    Plan by_hand = plan;
    by_hand.pipeline.mode = "MANUAL_EAGER";
    EXPECT_FALSE(cuts_by_time(by_hand));
    const Balance balance = find_balance(graph, plan, 2, times);
    EXPECT_EQ(balance.bottleneck, 9);
    EXPECT_EQ(balance.next_best, 10);
}

TEST(Split, AutoCutsOnlyWhereItMay) {
    GraphMaker maker;
    int value = maker.input("x");
    for (int i = 0; i < 4; ++i) value = maker.op("m" + std::to_string(i), {value}, 1);
    maker.forbid(2, "a test says so");
    const Graph graph = maker.finish();
    EXPECT_THAT(candidate_cuts(graph, plan_with_method("AUTO")), ElementsAre(1, 3));
    EXPECT_THAT(find_balance(graph, plan_with_method("AUTO"), 2, times_of({1, 1, 1, 1})).cuts, ElementsAre(1));
    EXPECT_THAT(plan_error([&] {
                    find_balance(graph, plan_with_method("AUTO"), 4, times_of({1, 1, 1, 1}));
                }),
                HasSubstr("can be cut at 2 places (1 is refused since a test says so), so it cannot be split into 4 "
                          "stages; lower pipeline.num_stages or virtual_chunks"));
}

TEST(Split, AutoKeepsStagesWithinMemory) {
    Graph graph = chain({1, 1, 1, 1});
    for (GraphOp& op : graph.ops) op.kept_bytes = 100;
    SplitTimes times = times_of({1, 1, 1, 1});
    const Plan plan = plan_with_method("AUTO");
    times.in_flight = {2, 1};
    EXPECT_THAT(find_balance(graph, plan, 2, times).cuts, ElementsAre(2)) << "no limit";
    times.most_activation_bytes = 332;
    EXPECT_THAT(find_balance(graph, plan, 2, times).cuts, ElementsAre(1)) << "stage 0 holds two microbatches";
    times.most_activation_bytes = 331;
    EXPECT_THAT(plan_error([&] { find_balance(graph, plan, 2, times); }),
                HasSubstr("no cut into 2 stages keeps the activations of every stage within pipeline.memory_limit "
                          "(expected at most 331B of a stage); try a larger pipeline.num_microbatches, more stages, "
                          "or a larger limit"));
}

TEST(Split, AutoCountsWhatComesToAStage) {
    // a and b cross the first cut; a is used again at the end.
    GraphMaker maker;
    const int x = maker.input("x"), w = maker.parameter("w", 4);
    const int a = maker.op("", {x, w}), b = maker.op("", {a}), c = maker.op("", {b});
    maker.op("", {c, a});
    Graph graph = maker.finish();
    for (GraphOp& op : graph.ops) op.kept_bytes = 100;
    const Plan plan = plan_with_method("AUTO");
    SplitTimes times = times_of({1, 1, 1, 1});
    for (int cut : {1, 2, 3}) {
        const Split split = make_stages(graph, {cut});
        int64_t most = 0;
        for (const StageSpec& stage : split.stages) most = std::max(most, stage.activation_bytes);
        for (GraphCut& other : graph.cuts) other.legal = &other == &graph.cuts[static_cast<size_t>(cut)];
        times.most_activation_bytes = most;
        EXPECT_THAT(find_balance(graph, plan, 2, times).cuts, ElementsAre(cut));
        times.most_activation_bytes = most - 1;
        EXPECT_THAT(plan_error([&] { find_balance(graph, plan, 2, times); }),
                    HasSubstr("within pipeline.memory_limit"));
    }
}

TEST(Split, MethodsAreNamedAndOneStageNeedsNoCut) {
    EXPECT_THAT(split_methods(), ElementsAre("MANUAL", "UNIFORM", "PARAMETERS", "FLOPS", "AUTO"));
    EXPECT_THAT(find_split(chain({1, 1}), plan_with_method("FLOPS"), 1), IsEmpty());
}

TEST(Split, FlopsAreBalanced) {
    EXPECT_THAT(find_split(chain({5, 1, 1, 1, 1, 1}), plan_with_method("FLOPS"), 2), ElementsAre(1));
    EXPECT_THAT(find_split(chain({1, 1, 1, 1, 1, 5}), plan_with_method("FLOPS"), 2), ElementsAre(5));
    EXPECT_THAT(find_split(chain({3, 3, 3, 3}), plan_with_method("FLOPS"), 4), ElementsAre(1, 2, 3));
}

TEST(Split, ParametersCountWhereTheyAreFirstUsedAndBuffersDoNot) {
    GraphMaker maker;
    int x = maker.input("x");
    const int big = maker.parameter("big", 1000), small = maker.parameter("small", 10);
    const int buffer = maker.parameter("buffer", 100000, false, true);
    x = maker.op("a", {x, small});
    x = maker.op("b", {x, small});
    x = maker.op("c", {x, big});
    x = maker.op("d", {x, buffer});
    maker.op("e", {x, small, big});
    EXPECT_THAT(find_split(maker.finish(), plan_with_method("PARAMETERS"), 2), ElementsAre(1))
        << "before c, as early as can be";
}

TEST(Split, IllegalCutsAreNeverTaken) {
    for (const std::string method : {"FLOPS", "PARAMETERS", "UNIFORM"}) {
        GraphMaker maker;
        int x = maker.input("x");
        for (int i = 0; i < 8; ++i) x = maker.op("", {x, maker.parameter("p" + std::to_string(i), 4)});
        for (int cut = 1; cut < 8; ++cut) {
            if (cut != 2 && cut != 7) maker.forbid(cut, "why");
        }
        Plan plan = plan_with_method(method);
        plan.pipeline.uniform_split_ops = true;
        const Graph graph = maker.finish();
        EXPECT_THAT(find_split(graph, plan, 3), ElementsAre(2, 7)) << method;
        EXPECT_THAT(find_split(graph, plan, 2), ElementsAre(2)) << method;
        const std::string text = plan_error([&] { find_split(graph, plan, 4); });
        EXPECT_THAT(text, HasSubstr("4 stages")) << method;
        EXPECT_THAT(text, HasSubstr("can be cut at 2 places")) << method;
    }
}

TEST(Split, UniformCountsUnitsAndGivesTheFirstOnesOneMore) {
    // Block i ends at op 3 i + 2; the root op behind it begins the next stage.
    EXPECT_THAT(find_split(blocks(4), plan_with_method("UNIFORM"), 2), ElementsAre(5));
    EXPECT_THAT(find_split(blocks(5), plan_with_method("UNIFORM"), 2), ElementsAre(8));
    EXPECT_THAT(find_split(blocks(8), plan_with_method("UNIFORM"), 3), ElementsAre(8, 17));
    const std::string text = plan_error([] { find_split(blocks(2), plan_with_method("UNIFORM"), 3); });
    EXPECT_THAT(text, HasSubstr("3 stages of 2 units"));
    EXPECT_THAT(text, HasSubstr("uniform_split_ops"));
}

TEST(Split, UniformCountsOpsWhenAsked) {
    Plan plan = plan_with_method("UNIFORM");
    plan.pipeline.uniform_split_ops = true;
    EXPECT_THAT(find_split(chain({9, 1, 1, 1, 1, 1, 1, 1}), plan, 4), ElementsAre(2, 4, 6));
    EXPECT_THAT(find_split(chain({1, 1, 1}), plan, 3), ElementsAre(1, 2));
    EXPECT_THAT(find_split(chain({1, 1, 1, 1, 1, 1, 1}), plan, 3), ElementsAre(2, 4));
}

TEST(Split, UniformTakesAllLegalCutsWhenItNeedsThem) {
    // The nearest cut to the second mark is the last one, but a third part must still fit.
    GraphMaker maker;
    int x = maker.input("x");
    for (int i = 0; i < 100; ++i) x = maker.op("", {x});
    for (int cut = 1; cut < 100; ++cut) {
        if (cut != 10 && cut != 20 && cut != 90) maker.forbid(cut, "why");
    }
    Plan plan = plan_with_method("UNIFORM");
    plan.pipeline.uniform_split_ops = true;
    EXPECT_THAT(find_split(maker.finish(), plan, 4), ElementsAre(10, 20, 90));
}

TEST(Split, UnitsAreNeverCut) {
    for (const std::string method : {"FLOPS", "UNIFORM"}) {
        Plan plan = plan_with_method(method);
        plan.pipeline.smallest_unsplittable_units = {"Block"};
        const Graph graph = blocks(3);
        const Units units = find_units(graph, {"Block"});
        for (int stages = 2; stages <= 3; ++stages) {
            const std::vector<int> cuts = find_split(graph, plan, stages);
            ASSERT_THAT(cuts, SizeIs(stages - 1));
            for (int cut : cuts) {
                const auto at = static_cast<size_t>(cut);
                EXPECT_TRUE(units.unit_of[at] < 0 || units.unit_of[at] != units.unit_of[at - 1])
                    << method << " " << cut;
            }
        }
    }
    // The negative control: without the list FLOPS would cut inside a block.
    EXPECT_THAT(find_split(blocks(1), plan_with_method("FLOPS"), 2), ElementsAre(1));
    Plan plan = plan_with_method("FLOPS");
    plan.pipeline.smallest_unsplittable_units = {"b.*"};
    EXPECT_THAT(find_split(blocks(1), plan, 2), ElementsAre(2));
    EXPECT_THAT(plan_error([&] { find_split(blocks(1), plan, 4); }), HasSubstr("smallest_unsplittable_units"));
}

TEST(Split, ManualPointsNameTheLastSubmoduleOfAPart) {
    EXPECT_THAT(find_split(blocks(4), manual({"b.0"}), 2), ElementsAre(2));
    EXPECT_THAT(find_split(blocks(4), manual({"b.0", "head"}), 2), ElementsAre(2)) << "the end may be named";
    EXPECT_THAT(find_split(blocks(4), manual({"b.0", "b.2"}), 3), ElementsAre(2, 8));
    EXPECT_THAT(find_split(blocks(4), manual({"b"}), 2), ElementsAre(11)) << "a container ends with its last op";
    EXPECT_THAT(find_split(blocks(12), manual({"b.1"}), 2), ElementsAre(5)) << "b.10 is another submodule";
}

TEST(Split, ManualWithChunksTakesPartsOrAllStages) {
    const Graph graph = blocks(8);
    // All ends: 2 ranks x 2 chunks.
    EXPECT_THAT(find_split(graph, manual({"b.0", "b.3", "b.5"}, 2), 4), ElementsAre(2, 11, 17));
    EXPECT_THAT(find_split(graph, manual({"b.0", "b.3", "b.5", "head"}, 2), 4), ElementsAre(2, 11, 17));
    // Ends of pp parts, each cut evenly: blocks 0 to 3 and 4 to 7.
    EXPECT_THAT(find_split(graph, manual({"b.3"}, 2), 4), ElementsAre(5, 11, 17));
    EXPECT_THAT(find_split(graph, manual({"b.3", "head"}, 2), 4), ElementsAre(5, 11, 17));
    // A part with fewer units than chunks is cut by FLOPs: block 0 between its two ops.
    EXPECT_THAT(find_split(graph, manual({"b.0"}, 2), 4), ElementsAre(1, 2, 14));
}

TEST(Split, ManualErrorsSayWhereAndWhatInstead) {
    const Graph graph = blocks(4);
    std::string text = plan_error([&] { find_split(graph, manual({"b.O"}), 2); });
    EXPECT_THAT(text, HasSubstr("no submodule 'b.O'"));
    EXPECT_THAT(text, HasSubstr("did you mean 'b.0'?"));
    EXPECT_THAT(text, HasSubstr("plan.toml:10:5"));
    text = plan_error([&] { find_split(graph, manual({"b.2", "b.1"}), 3); });
    EXPECT_THAT(text, HasSubstr("'b.1' leaves a stage without ops"));
    EXPECT_THAT(text, HasSubstr("plan.toml:11:5"));
    EXPECT_THAT(plan_error([&] { find_split(graph, manual({"b.1", "b.1"}), 3); }), HasSubstr("without ops"));
    EXPECT_THAT(plan_error([&] { find_split(graph, manual({"head"}), 2); }), HasSubstr("without ops"));
    EXPECT_THAT(plan_error([&] { find_split(graph, manual({"b.0"}), 4); }),
                HasSubstr("split_points names 1 part; 4 are needed (the last may be left out)"));
    EXPECT_THAT(plan_error([&] { find_split(graph, manual({"b.0", "b.1", "b.2", "head"}), 2); }), HasSubstr("names 4"));
}

TEST(Split, ASubmoduleThatComputesNothingIsNoPoint) {
    GraphMaker maker;
    const int x = maker.input("x");
    maker.op("b", {maker.op("a", {x})});
    maker.modules({"a:Linear", "idle:Linear", "b:Linear"});
    EXPECT_THAT(plan_error([&] { find_split(maker.finish(), manual({"idle"}), 2); }),
                HasSubstr("the split point 'idle' is a submodule that computes nothing in forward"));
}

TEST(Split, AnIllegalPointNamesTheNearestLegalCuts) {
    GraphMaker maker;
    int x = maker.input("x");
    for (const char* module : {"a", "b", "c", "d", "e"}) x = maker.op(module, {x});
    maker.forbid(2, "'h' is written");
    maker.forbid(3, "'h' is written");
    maker.modules({"a:A", "b:B", "c:C", "d:D", "e:E"});
    const Graph graph = maker.finish();
    const std::string text = plan_error([&] { find_split(graph, manual({"b"}), 2); });
    EXPECT_THAT(text, HasSubstr("cannot be cut after 'b': 'h' is written"));
    EXPECT_THAT(text, HasSubstr("after op 0 (aten::op of 'a') and after op 3 (aten::op of 'd')"));
    Plan plan = manual({"a"});
    plan.pipeline.smallest_unsplittable_units = {"*"};
    EXPECT_NO_THROW(find_split(graph, plan, 2)) << "the end of a unit is no cut inside it";
}

TEST(Split, APointInsideAUnitSaysSo) {
    GraphMaker maker;
    int x = maker.input("x");
    for (const char* module : {"a.fc", "a.act", "b"}) x = maker.op(module, {x});
    maker.modules({"a:Block", "a.fc:Linear", "a.act:GELU", "b:Norm"});
    Plan plan = manual({"a.fc"});
    plan.pipeline.smallest_unsplittable_units = {"Block"};
    const Graph graph = maker.finish();
    EXPECT_THAT(plan_error([&] { find_split(graph, plan, 2); }), HasSubstr("inside a unit"));
    EXPECT_THAT(find_split(graph, manual({"a.fc"}), 2), ElementsAre(1));
}

TEST(CutBytes, CountEveryLiveTensorOnceAndNoInputsOrParameters) {
    GraphMaker maker;
    const int x = maker.input("x"), w = maker.parameter("w", 1000);
    const int a = maker.op("", {x, w}, 1, 10);
    const int b = maker.op("", {a}, 1, 20);
    const int same = maker.write("", b);               // the tensor of b under another name
    const int list = maker.plain("", {a, b}, {a, b});  // and both again in a list
    maker.op("", {a, same, list, x, w}, 1, 1);
    const Graph graph = maker.finish();
    EXPECT_EQ(cut_bytes(graph, 1), 40);
    EXPECT_EQ(cut_bytes(graph, 2), 40 + 80);
    EXPECT_EQ(cut_bytes(graph, 4), 40 + 80);
    EXPECT_THAT(all_cut_bytes(graph), ElementsAre(0, 40, 120, 120, 120));
}

TEST(CutBytes, OneWalkFindsWhatEveryCutByItselfDoes) {
    for (uint64_t seed = 0; seed < 40; ++seed) {
        uint64_t state = seed;
        const auto draw = [&](size_t below) { return static_cast<size_t>(mix64(++state) % below); };
        GraphMaker maker;
        std::vector<int> values{maker.input("x"), maker.parameter("w", 100)};
        for (int op = 0; op < 30; ++op) {
            const int a = values[draw(values.size())], b = values[draw(values.size())];
            const size_t kind = draw(6);
            if (kind == 0)
                values.push_back(maker.write("", a));
            else if (kind == 1)
                values.push_back(maker.plain("", {a, b}, {a, b}));
            else
                values.push_back(maker.op("", {a, b}, 1, static_cast<int64_t>(1 + draw(50))));
        }
        const Graph graph = maker.finish();
        const std::vector<int64_t> all = all_cut_bytes(graph);
        for (int op = 0; op < graph.num_ops(); ++op) {
            EXPECT_EQ(all[static_cast<size_t>(op)], cut_bytes(graph, op)) << "seed " << seed << ", op " << op;
        }
    }
}

}  // namespace
}  // namespace vpp
