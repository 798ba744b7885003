#include "engine/value_ranges.hpp"

#include "graph/input_behind.hpp"

namespace vpp {

namespace {

/// Null for what is no tensor.
const std::vector<int64_t>* shape_of(const Graph& graph, int value) {
    const GraphValue& entry = graph.values[static_cast<size_t>(value)];
    return entry.is_tensor ? &graph.tensors[static_cast<size_t>(entry.tensors[0])].shape : nullptr;
}

}  // namespace

std::vector<ValueRange> find_value_ranges(const Graph& graph) {
    std::vector<ValueRange> ranges;
    auto add = [&](int value, int64_t bound, const std::string& meaning, std::optional<int64_t> ignored) {
        const int input = input_behind(graph, value);
        if (input >= 0) ranges.push_back({graph.inputs[static_cast<size_t>(input)].name, bound, meaning, ignored});
    };
    for (const GraphOp& op : graph.ops) {
        if (op.inputs.size() < 2) continue;
        const std::string owner = op.module.empty() ? "the model" : "'" + op.module + "'";
        if (op.kind == "aten::embedding" && shape_of(graph, op.inputs[0])) {
            add(op.inputs[1], shape_of(graph, op.inputs[0])->at(0), "rows of the embedding of " + owner, std::nullopt);
        }
        const bool classes = op.kind == "aten::cross_entropy_loss" || op.kind.starts_with("aten::nll_loss");
        const auto* logits = classes && !op.ignored_targets.empty() ? shape_of(graph, op.inputs[0]) : nullptr;
        if (logits && !logits->empty()) {
            add(op.inputs[1], logits->at(logits->size() > 1 ? 1 : 0), "classes of the loss", op.ignored_targets[0]);
        }
    }
    return ranges;
}

}  // namespace vpp
