// Which weights autocast casts, seen from the graph: ops that compute in the lower dtype whatever they are given.
#include <algorithm>
#include <array>
#include <string_view>

#include "graph/jit_graph.hpp"

namespace vpp {

using torch::jit::Node;
using torch::jit::Value;

namespace {

/// On LibTorch's lists of every device, in these forms: not with `out`, not with a dtype.
constexpr std::array<std::string_view, 13> kCastOps{
    "aten::addbmm",           "aten::addmm",  "aten::baddbmm",          "aten::bmm",
    "aten::conv1d",           "aten::conv2d", "aten::conv3d",           "aten::linear",
    "aten::matmul",           "aten::mm",     "aten::conv_transpose1d", "aten::conv_transpose2d",
    "aten::conv_transpose3d",
};

constexpr std::array<std::string_view, 3> kCastForms{"", "input", "padding"};

bool is_cast_op(const Node* node) {
    const c10::FunctionSchema* schema = node->maybeSchema();
    return schema && std::ranges::find(kCastOps, schema->name()) != kCastOps.end() &&
           std::ranges::find(kCastForms, schema->overload_name()) != kCastForms.end();
}

bool may_be_tensor(const Value* value) {
    const auto optional = value->type()->cast<c10::OptionalType>();
    return value->type()->isSubtypeOf(*c10::TensorType::get()) ||
           (optional && optional->getElementType()->isSubtypeOf(*c10::TensorType::get()));
}

}  // namespace

std::vector<size_t> cast_inputs(const JitGraph& jit, const JitOp& op) {
    if (!op.modes.autocast || !is_cast_op(op.node)) return {};
    std::vector<size_t> inputs;
    for (size_t i = op.node->inputs().size(); i-- > 0;) {
        const Value* input = op.node->input(i);
        if (!may_be_tensor(input)) continue;
        if (input->node() != jit.graph->param_node()) break;
        inputs.push_back(i);
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
