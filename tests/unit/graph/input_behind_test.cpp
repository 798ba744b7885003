#include "graph/input_behind.hpp"

#include <gtest/gtest.h>

namespace vpp {
namespace {

/// Value 0 is the input, 1 is what an op makes of it.
Graph graph_of(const std::string& op, DType dtype = DType::I64, const std::vector<int64_t>& made = {6}) {
    Graph graph;
    graph.tensors.resize(2);
    graph.tensors[0].dtype = graph.tensors[1].dtype = dtype;
    graph.tensors[0].shape = {2, 3};
    graph.tensors[1].shape = made;
    graph.tensors[0].input = 0;
    for (const int i : {0, 1}) graph.values.push_back({"", "Tensor", true, {i}, i - 1, {}});
    graph.ops.resize(1);
    graph.ops[0].kind = op;
    graph.ops[0].inputs = {0};
    graph.ops[0].outputs = {1};
    graph.inputs = {{"targets", 0}};
    return graph;
}

TEST(InputBehind, ViewsOfAllThatItHoldsAreFollowed) {
    EXPECT_EQ(input_behind(graph_of("aten::view"), 0), 0);
    EXPECT_EQ(input_behind(graph_of("aten::flatten"), 1), 0);
    EXPECT_EQ(input_behind(graph_of("aten::slice", DType::I64, {2, 3}), 1), 0);
    EXPECT_EQ(input_behind(graph_of("aten::slice", DType::I64, {2, 2}), 1), -1) << "a part";
    EXPECT_EQ(input_behind(graph_of("aten::add"), 1), -1) << "other values";
}

TEST(InputBehind, TypesThatDoNotHoldAllAreNotFollowed) {
    const auto converted = [](DType from, DType to) {
        Graph graph = graph_of("aten::to", from);
        graph.tensors[1].dtype = to;
        return input_behind(graph, 1);
    };
    for (const auto& [from, to] :
         {std::pair{DType::U8, DType::I64}, {DType::U8, DType::I16}, {DType::U16, DType::I32}}) {
        EXPECT_EQ(converted(from, to), 0);
    }
    for (const auto& [from, to] : {std::pair{DType::I64, DType::Bool},
                                   {DType::U8, DType::I8},
                                   {DType::I64, DType::I32},
                                   {DType::U16, DType::I16},
                                   {DType::I32, DType::F32}}) {
        EXPECT_EQ(converted(from, to), -1);
    }
}

TEST(InputBehind, ItHoldsIntegersThatNobodyWrites) {
    EXPECT_EQ(input_behind(graph_of("aten::to", DType::U8), 1), 0);
    for (const DType dtype : {DType::F32, DType::Bool}) EXPECT_EQ(input_behind(graph_of("aten::to", dtype), 1), -1);
    Graph written = graph_of("aten::view");
    written.tensors[0].writers = {0};
    EXPECT_EQ(input_behind(written, 1), -1);
    EXPECT_EQ(input_behind(written, -1), -1);
}

}  // namespace
}  // namespace vpp
