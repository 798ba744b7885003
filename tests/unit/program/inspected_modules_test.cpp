// The tree of submodules: folded, opened where it is cut, and the same ops as blocks.
#include "program/inspected_modules.hpp"

#include <gmock/gmock.h>

#include "unit/graph/graphs.hpp"

namespace vpp {
namespace {

using ::testing::ElementsAre;

/// in, then six blocks of two submodules each, then head; every op has a FLOP, every "up" a weight of 10.
Graph deep() {
    test::GraphMaker maker;
    std::vector<std::string> modules{"in:Linear", "blocks:ModuleList"};
    for (int i = 0; i < 6; ++i) {
        const std::string block = "blocks." + std::to_string(i);
        modules.insert(modules.end(),
                       {block + ":Block", block + ".up:Linear", block + ".down:Linear", block + ".no:Identity"});
    }
    modules.push_back("head:Linear");
    maker.modules(modules);
    int x = maker.op("in", {maker.input("x")});
    for (int i = 0; i < 6; ++i) {
        const std::string block = "blocks." + std::to_string(i);
        const int y = maker.op(block + ".up", {x, maker.parameter(block + ".up.weight", 10)});
        x = maker.op(block, {x, maker.op(block + ".down", {y})});
    }
    maker.op("head", {x});
    return maker.finish();
}

/// "blocks.0..2 x3 [0]"
std::vector<std::string> rows_of(const InspectedTree& tree) {
    std::vector<std::string> rows;
    for (const InspectedModule& row : tree.modules) {
        std::string text = std::string(static_cast<size_t>(row.depth), '>') + row.name;
        if (row.count > 1) text += " x" + std::to_string(row.count);
        text += " [";
        for (int stage : row.stages) text += std::to_string(stage);
        rows.push_back(text + "]");
    }
    return rows;
}

TEST(InspectedModules, BlocksOfAStageAreOneRowAndACutOneIsOpened) {
    const Graph graph = deep();  // op 0: in; block i: ops 1 + 3 i to 3 + 3 i; op 19: head
    const InspectedTree tree = inspect_modules(graph, make_stages(graph, {11}), 2);
    EXPECT_THAT(rows_of(tree),
                ElementsAre("model [01]", ">in [0]", ">blocks [01]", ">>0..2 x3 [0]", ">>3 [01]", ">>>up [0]",
                            ">>>down [1]", ">>>(itself) [1]", ">>4..5 x2 [1]", ">head [1]"));
    EXPECT_EQ(tree.modules[0].num_ops, 20);
    EXPECT_EQ(tree.modules[0].num_parameters, 60);
    EXPECT_EQ(tree.modules[3].num_ops, 9);
    EXPECT_EQ(tree.modules[3].num_parameters, 30);
    EXPECT_EQ(tree.modules[3].parameter_bytes, 120);
    EXPECT_EQ(tree.modules[3].flops, 9);
    EXPECT_EQ(tree.modules[3].path, "blocks.0");
    EXPECT_EQ(tree.modules[3].class_name, "Block");
    EXPECT_EQ(tree.modules[7].num_ops, 1);
}

TEST(InspectedModules, DepthOpensWhatLiesInOneStage) {
    const Graph graph = deep();
    const Split whole = make_stages(graph, {});
    EXPECT_THAT(rows_of(inspect_modules(graph, whole, 0)), ElementsAre("model [0]"));
    EXPECT_THAT(rows_of(inspect_modules(graph, whole, 1)),
                ElementsAre("model [0]", ">in [0]", ">blocks [0]", ">head [0]"));
    EXPECT_THAT(rows_of(inspect_modules(graph, whole, 2)),
                ElementsAre("model [0]", ">in [0]", ">blocks [0]", ">>0..5 x6 [0]", ">head [0]"));
}

TEST(InspectedModules, OtherStructureIsNotFolded) {
    test::GraphMaker maker;
    maker.modules({"a:Linear", "b:Linear", "c:Linear", "d:ReLU"});
    int x = maker.input("x");
    x = maker.op("a", {x, maker.parameter("a.weight", 10)});
    x = maker.op("b", {x, maker.parameter("b.weight", 20)});
    x = maker.op("c", {x, maker.parameter("c.weight", 20)});
    x = maker.op("d", {x});
    const Graph graph = maker.finish();
    EXPECT_THAT(rows_of(inspect_modules(graph, make_stages(graph, {}), 2)),
                ElementsAre("model [0]", ">a [0]", ">b..c x2 [0]", ">d [0]"));
}

TEST(InspectedModules, EveryOpIsInOneBlockAndFlowsCarryEachTensorOnce) {
    const Graph graph = deep();
    const InspectedTree tree = inspect_modules(graph, make_stages(graph, {11}), 2);
    int ops = 0;
    for (const InspectedBlock& block : tree.blocks) ops += block.num_ops;
    EXPECT_EQ(ops, graph.num_ops());
    // in | 0..2 | 3.up || 3.down | 3 (itself) | 4..5 | head
    ASSERT_EQ(tree.blocks.size(), 7U);
    EXPECT_EQ(tree.blocks[2].stage, 0);
    EXPECT_EQ(tree.blocks[3].stage, 1);
    std::vector<std::pair<int, int>> ends;
    for (const InspectedFlow& flow : tree.flows) {
        ends.emplace_back(flow.from, flow.to);
        EXPECT_EQ(flow.bytes, 32) << flow.from << " to " << flow.to;
    }
    EXPECT_THAT(ends, ElementsAre(std::pair(0, 1), std::pair(1, 2), std::pair(1, 4), std::pair(2, 3), std::pair(3, 4),
                                  std::pair(4, 5), std::pair(5, 6)));
}

TEST(InspectedModules, OpsOfUnknownModulesHaveRowsToo) {
    test::GraphMaker maker;
    maker.op("loss", {maker.op("a.b", {maker.input("x")})});
    const Graph graph = maker.finish();
    EXPECT_THAT(rows_of(inspect_modules(graph, make_stages(graph, {1}), 2)),
                ElementsAre("model [01]", ">a [0]", ">>b [0]", ">loss [1]"));
}

TEST(InspectedModules, AStageIsNamedByItsOutermostSubmodules) {
    const Graph graph = deep();
    const Split split = make_stages(graph, {11, 19});
    EXPECT_EQ(modules_of_stage(graph, split.stages[0]), "in .. blocks.3");
    EXPECT_EQ(modules_of_stage(graph, split.stages[2]), "head");
}

}  // namespace
}  // namespace vpp
