#include "engine/value_ranges.hpp"

#include "unit/engine/support.hpp"

namespace vpp::test {
namespace {

std::vector<ValueRange> ranges_of(const std::string& model) {
    const TemporaryFolder folder;
    return find_value_ranges(set_up_tiny(model, folder.path(".")).graph());
}

TEST(ValueRanges, findsTheRowsOfAnEmbedding) {
    const auto ranges = ranges_of("looks_up");
    ASSERT_EQ(ranges.size(), 1u);
    EXPECT_EQ(ranges[0].field, "x");
    EXPECT_EQ(ranges[0].bound, 4);
    EXPECT_HAS(ranges[0].meaning, "rows of the embedding");
    EXPECT_FALSE(ranges[0].ignore_index.has_value());
}

TEST(ValueRanges, findsTheClassesOfALoss) {
    const auto ranges = ranges_of("bn_cnn");
    ASSERT_EQ(ranges.size(), 1u);
    EXPECT_EQ(ranges[0].field, "y");
    EXPECT_EQ(ranges[0].bound, 4);
    EXPECT_EQ(ranges[0].ignore_index, -100);
    EXPECT_EQ(ranges[0].meaning, "classes of the loss");
}

TEST(ValueRanges, findsNothingInModelsWithoutIndices) {
    EXPECT_TRUE(ranges_of("mlp").empty());
}

/// tokens -> view -> embedding; a computed index is nobody's input.
Graph embedding_graph(const std::string& between) {
    Graph graph;
    graph.tensors.resize(3);
    graph.tensors[0].shape = {9, 2};
    graph.tensors[1] = graph.tensors[2] = {"tokens", DType::I64, {2, 3}, false, 0, -1, 0, -1, {}, {}};
    graph.tensors[2].input = -1;
    for (int i = 0; i < 3; ++i) graph.values.push_back({"", "Tensor", true, {i}, i == 2 ? 0 : -1, {}});
    graph.ops.resize(2);
    graph.ops[0].kind = between;
    graph.ops[0].inputs = {1};
    graph.ops[0].outputs = {2};
    graph.ops[1].kind = "aten::embedding";
    graph.ops[1].module = "wte";
    graph.ops[1].inputs = {0, 2};
    graph.inputs = {{"tokens", 1}};
    return graph;
}

TEST(ValueRanges, followsViewsButNotArithmetic) {
    const auto ranges = find_value_ranges(embedding_graph("aten::view"));
    ASSERT_EQ(ranges.size(), 1u);
    EXPECT_EQ(ranges[0].bound, 9);
    EXPECT_HAS(ranges[0].meaning, "'wte'");
    EXPECT_TRUE(find_value_ranges(embedding_graph("aten::add")).empty());
}

TEST(ValueRanges, aSliceThatLeavesSomethingOutSaysNothingOfTheRest) {
    Graph graph = embedding_graph("aten::slice");
    EXPECT_EQ(find_value_ranges(graph).size(), 1u);
    graph.tensors[2].shape = {2, 1};
    EXPECT_TRUE(find_value_ranges(graph).empty());
    EXPECT_TRUE(find_value_ranges(embedding_graph("aten::select")).empty());
}

TEST(ValueRanges, whatIsWrittenOrCastFromFractionsIsLeftAlone) {
    Graph graph = embedding_graph("aten::to");
    EXPECT_EQ(find_value_ranges(graph).size(), 1u);
    graph.tensors[1].dtype = DType::F32;
    EXPECT_TRUE(find_value_ranges(graph).empty());
    graph = embedding_graph("aten::view");
    graph.tensors[1].writers = {0};
    EXPECT_TRUE(find_value_ranges(graph).empty());
}

TEST(ValueRanges, findsWhatGatherChoosesFrom) {
    Graph graph = embedding_graph("aten::view");
    graph.ops[1].kind = "aten::gather";
    graph.ops[1].indices = {{2, -9, 9}};
    const auto ranges = find_value_ranges(graph);
    ASSERT_EQ(ranges.size(), 1u);
    EXPECT_EQ(ranges[0].field, "tokens");
    EXPECT_EQ(ranges[0].bound, 9);
    EXPECT_EQ(ranges[0].least, -9);
    EXPECT_EQ(ranges[0].meaning, "size that aten::gather in 'wte' chooses from");
}

/// Scores of 9 classes -> loss of the tokens.
Graph loss_graph(const std::string& kind, const std::vector<int64_t>& ignored) {
    Graph graph = embedding_graph("aten::view");
    graph.tensors[0].shape = {2, 9};
    graph.ops[1].kind = kind;
    graph.ops[1].ignored_targets = ignored;
    return graph;
}

TEST(ValueRanges, theLossItselfSaysWhatItIgnores) {
    for (const char* kind : {"aten::cross_entropy_loss", "aten::nll_loss", "aten::nll_loss_nd", "aten::nll_loss2d"}) {
        const auto ranges = find_value_ranges(loss_graph(kind, {-1}));
        ASSERT_EQ(ranges.size(), 1u) << kind;
        EXPECT_EQ(ranges[0].bound, 9);
        EXPECT_EQ(ranges[0].ignore_index, -1);
        EXPECT_TRUE(find_value_ranges(loss_graph(kind, {})).empty());
    }
}

}  // namespace
}  // namespace vpp::test
