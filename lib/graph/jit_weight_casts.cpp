// Which weights autocast casts, seen from the graph: ops that compute in the lower dtype whatever they are given.
#include <algorithm>
#include <array>
#include <string_view>

#include "graph/jit_graph.hpp"

namespace vpp {

using torch::jit::Node;
using torch::jit::Value;

namespace {

/// On LibTorch's lists of every device.
constexpr std::array<std::string_view, 13> kCastOps{
    "aten::addbmm",           "aten::addmm",  "aten::baddbmm",          "aten::bmm",
    "aten::conv1d",           "aten::conv2d", "aten::conv3d",           "aten::linear",
    "aten::matmul",           "aten::mm",     "aten::conv_transpose1d", "aten::conv_transpose2d",
    "aten::conv_transpose3d",
};

}  // namespace

std::vector<size_t> cast_inputs(const JitGraph& jit, const JitOp& op) {
    if (!op.modes.autocast || std::ranges::find(kCastOps, op.node->kind().toQualString()) == kCastOps.end()) return {};
    std::vector<size_t> inputs;
    for (size_t i = 0; i < op.node->inputs().size(); ++i) {
        if (op.node->input(i)->node() == jit.graph->param_node()) inputs.push_back(i);
    }
    return inputs;
}

Node* make_cast_weight(torch::jit::Graph& graph, Value* weight, at::ScalarType dtype) {
    Node* cast = graph.create(c10::Symbol::fromQualString("vpp::cast_weight"));
    cast->addInput(weight);
    cast->addInput(graph.insertConstant(dtype));
    return cast;
}

}  // namespace vpp
