#include "engine/value_ranges.hpp"

#include "unit/engine/support.hpp"

namespace vpp::test {
namespace {

std::vector<ValueRange> ranges_of(const std::string& model, int64_t ignore_index = -100) {
    const TemporaryFolder folder;
    return find_value_ranges(set_up_tiny(model, folder.path(".")).graph(), ignore_index);
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
    const auto ranges = ranges_of("bn_cnn", -7);
    ASSERT_EQ(ranges.size(), 1u);
    EXPECT_EQ(ranges[0].field, "y");
    EXPECT_EQ(ranges[0].bound, 4);
    EXPECT_EQ(ranges[0].ignore_index, -7);
}

TEST(ValueRanges, findsNothingInModelsWithoutIndices) {
    EXPECT_TRUE(ranges_of("mlp").empty());
}

/// tokens -> view -> embedding; a computed index is nobody's input.
Graph embedding_graph(const std::string& between) {
    Graph graph;
    graph.tensors = {{.name = "table", .shape = {9, 2}},
                     {.name = "tokens", .dtype = DType::I64, .shape = {2, 3}, .input = 0},
                     {.name = "flat", .dtype = DType::I64, .shape = {6}, .producer = 0}};
    graph.values = {{.name = "table", .is_tensor = true, .tensors = {0}},
                    {.name = "tokens", .is_tensor = true, .tensors = {1}},
                    {.name = "flat", .is_tensor = true, .tensors = {2}, .producer = 0}};
    graph.ops = {{.kind = between, .inputs = {1}, .outputs = {2}},
                 {.kind = "aten::embedding", .module = "wte", .inputs = {0, 2}}};
    graph.inputs = {{"tokens", 1}};
    return graph;
}

TEST(ValueRanges, followsViewsButNotArithmetic) {
    const auto ranges = find_value_ranges(embedding_graph("aten::view"), -100);
    ASSERT_EQ(ranges.size(), 1u);
    EXPECT_EQ(ranges[0].bound, 9);
    EXPECT_HAS(ranges[0].meaning, "'wte'");
    EXPECT_TRUE(find_value_ranges(embedding_graph("aten::add"), -100).empty());
}

}  // namespace
}  // namespace vpp::test
