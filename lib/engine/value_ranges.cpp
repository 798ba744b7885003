#include "engine/value_ranges.hpp"

#include "graph/input_behind.hpp"

namespace vpp {

std::vector<ValueRange> find_value_ranges(const Graph& graph) {
    std::vector<ValueRange> ranges;
    auto add = [&](int value, int64_t bound, const std::string& meaning, std::optional<int64_t> ignored,
                   int64_t least = 0) {
        const int input = input_behind(graph, value);
        if (input < 0 || bound <= 0) return;
        ranges.push_back({graph.inputs[static_cast<size_t>(input)].name, bound, meaning, ignored, least});
    };
    for (const GraphOp& op : graph.ops) {
        if (op.inputs.size() < 2) continue;
        const std::string owner = op.module.empty() ? "the model" : "'" + op.module + "'";
        const GraphTensor* table = graph.tensor_of(op.inputs[0]);
        if (op.kind == "aten::embedding" && table) {
            add(op.inputs[1], table->shape.at(0), "rows of the embedding of " + owner, std::nullopt);
        }
        for (const GraphIndex& index : op.indices) {
            add(index.value, index.size, "size that " + op.kind + " in " + owner + " chooses from", std::nullopt,
                index.least);
        }
        if (op.counts_classes() && table && !table->shape.empty()) {
            const int64_t classes = table->shape[table->shape.size() > 1 ? 1 : 0];
            add(op.inputs[1], classes, "classes of the loss", op.ignored_targets[0]);
        }
    }
    return ranges;
}

}  // namespace vpp
