#include "engine/value_ranges.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace vpp {

namespace {

/// Their output holds all that their input does.
constexpr std::array<std::string_view, 7> kViews{
    "aten::view", "aten::reshape", "aten::flatten", "aten::contiguous", "aten::squeeze", "aten::unsqueeze", "aten::to"};

class RangeFinder {
  public:
    explicit RangeFinder(const Graph& graph) : graph_(graph) {}

    /// The integer input of the model that a value is a view of, or -1. One that is written holds other values then.
    int input_behind(int value) const {
        while (value >= 0) {
            const int producer = graph_.values[static_cast<size_t>(value)].producer;
            if (producer < 0) {
                const GraphTensor* tensor = tensor_of(value);
                return tensor && tensor->writers.empty() && !is_floating(tensor->dtype) ? tensor->input : -1;
            }
            const GraphOp& op = graph_.ops[static_cast<size_t>(producer)];
            value = shows_all(op) ? op.inputs[0] : -1;
        }
        return -1;
    }

    const std::vector<int64_t>* shape_of(int value) const {
        const GraphTensor* tensor = tensor_of(value);
        return tensor ? &tensor->shape : nullptr;
    }

  private:
    /// The one tensor that a value is.
    const GraphTensor* tensor_of(int value) const {
        const GraphValue& entry = graph_.values[static_cast<size_t>(value)];
        return entry.is_tensor ? &graph_.tensors[static_cast<size_t>(entry.tensors[0])] : nullptr;
    }

    /// A slice does where it leaves nothing out.
    bool shows_all(const GraphOp& op) const {
        if (op.inputs.empty() || op.outputs.empty()) return false;
        if (std::find(kViews.begin(), kViews.end(), op.kind) != kViews.end()) return true;
        const auto *whole = shape_of(op.inputs[0]), *part = shape_of(op.outputs[0]);
        return op.kind == "aten::slice" && whole && part && *whole == *part;
    }

    const Graph& graph_;
};

}  // namespace

std::vector<ValueRange> find_value_ranges(const Graph& graph) {
    const RangeFinder finder(graph);
    std::vector<ValueRange> ranges;
    auto add = [&](int value, int64_t bound, const std::string& meaning, std::optional<int64_t> ignored) {
        const int input = finder.input_behind(value);
        if (input >= 0) ranges.push_back({graph.inputs[static_cast<size_t>(input)].name, bound, meaning, ignored});
    };
    for (const GraphOp& op : graph.ops) {
        if (op.inputs.size() < 2) continue;
        const std::string owner = op.module.empty() ? "the model" : "'" + op.module + "'";
        if (op.kind == "aten::embedding" && finder.shape_of(op.inputs[0])) {
            add(op.inputs[1], finder.shape_of(op.inputs[0])->at(0), "rows of the embedding of " + owner, std::nullopt);
        }
        const bool classes = op.kind == "aten::cross_entropy_loss" || op.kind.starts_with("aten::nll_loss");
        const auto* logits = classes && !op.ignored_targets.empty() ? finder.shape_of(op.inputs[0]) : nullptr;
        if (logits && !logits->empty()) {
            add(op.inputs[1], logits->at(logits->size() > 1 ? 1 : 0), "classes of the loss", op.ignored_targets[0]);
        }
    }
    return ranges;
}

}  // namespace vpp
