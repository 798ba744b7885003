#include "graph/input_behind.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace vpp {

namespace {

/// Their output holds all that their input does.
constexpr std::array<std::string_view, 7> kViews{
    "aten::view", "aten::reshape", "aten::flatten", "aten::contiguous", "aten::squeeze", "aten::unsqueeze", "aten::to"};

/// Whether integers of one type stay what they are in another.
bool holds_all(DType wide, DType narrow) {
    if (wide == narrow || wide == DType::I64) return true;
    const bool is_of_16_bits = narrow == DType::I16 || narrow == DType::U16;
    const bool is_of_8_bits = narrow == DType::I8 || narrow == DType::U8;
    return (wide == DType::I32 && (is_of_16_bits || is_of_8_bits)) || (wide == DType::I16 && is_of_8_bits);
}

/// A slice does where it leaves nothing out.
bool shows_all(const Graph& graph, const GraphOp& op) {
    if (op.inputs.empty() || op.outputs.empty()) return false;
    const GraphTensor *whole = graph.tensor_of(op.inputs[0]), *part = graph.tensor_of(op.outputs[0]);
    if (!whole || !part || !holds_all(part->dtype, whole->dtype)) return false;
    if (std::find(kViews.begin(), kViews.end(), op.kind) != kViews.end()) return true;
    return op.kind == "aten::slice" && whole->shape == part->shape;
}

}  // namespace

int input_behind(const Graph& graph, int value) {
    while (value >= 0) {
        const int producer = graph.values[static_cast<size_t>(value)].producer;
        if (producer < 0) {
            const GraphTensor* tensor = graph.tensor_of(value);
            const bool is_integer = tensor && !is_floating(tensor->dtype) && tensor->dtype != DType::Bool;
            return is_integer && tensor->writers.empty() ? tensor->input : -1;
        }
        const GraphOp& op = graph.ops[static_cast<size_t>(producer)];
        value = shows_all(graph, op) ? op.inputs[0] : -1;
    }
    return -1;
}

}  // namespace vpp
