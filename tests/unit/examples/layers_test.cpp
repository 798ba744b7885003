#include "examples/layers.hpp"

#include <gtest/gtest.h>

#include "graph/torchscript.hpp"
#include "unit/examples/made.hpp"

namespace vpp {
namespace {

/// The graph of one layer, its loss the mean of what it gives.
Graph graph_of(const ScriptedModule& layer, const std::string& data, const Field& field) {
    ScriptedModule model{"Model",
                         "def forward(self, " + data + "):\n    return torch.mean(self.layer.forward(" + data + "))\n"};
    model.children = {{"layer", layer}};
    TorchScriptOptions options;
    options.fields = {{field}, 8};
    options.microbatch_size = 2;
    return load_torchscript(test::archive_of(model), options).graph;
}

std::vector<int64_t> output_shape(const Graph& graph) {
    const GraphOp& mean = graph.ops.back();
    const int value = mean.inputs.front();
    return graph.tensors[static_cast<size_t>(graph.values[static_cast<size_t>(value)].tensors[0])].shape;
}

TEST(Layers, GiveTheShapesOfTorch) {
    using Shape = std::vector<int64_t>;
    EXPECT_EQ(output_shape(graph_of(linear(3, 5), "x", {"x", DType::F32, {3}})), (Shape{2, 5}));
    EXPECT_EQ(output_shape(graph_of(conv3x3(3, 4), "x", {"x", DType::F32, {3, 8, 6}})), (Shape{2, 4, 8, 6}));
    EXPECT_EQ(output_shape(graph_of(layer_norm(7), "x", {"x", DType::F32, {4, 7}})), (Shape{2, 4, 7}));
    EXPECT_EQ(output_shape(graph_of(embedding(9, 3, 1), "x", {"x", DType::I64, {5}, 9})), (Shape{2, 5, 3}));
}

TEST(Layers, HaveTheNamesOfTorch) {
    const Graph graph = graph_of(linear(3, 5), "x", {"x", DType::F32, {3}});
    ASSERT_EQ(graph.parameters.size(), 2U);
    EXPECT_EQ(graph.parameters[0].name, "layer.weight");
    EXPECT_EQ(graph.parameters[1].name, "layer.bias");
    EXPECT_TRUE(graph.parameters[0].requires_grad);
    EXPECT_EQ(graph.modules.back().class_name, "Linear");
}

TEST(Layers, BeginAsTorchsDo) {
    const ScriptedModule layer = linear(16, 5);
    EXPECT_EQ(layer.parameters[0].scale, 0.25);
    EXPECT_EQ(layer.parameters[1].scale, 0.25);
    EXPECT_EQ(conv3x3(4, 8).parameters[0].scale, 1.0 / 6);
    EXPECT_EQ(layer_norm(7).parameters[0].values, NewParameter::Values::Ones);
    EXPECT_EQ(layer_norm(7).parameters[1].values, NewParameter::Values::Zeros);
}

}  // namespace
}  // namespace vpp
