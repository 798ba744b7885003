#include "engine/value_ranges.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace vpp {

namespace {

constexpr std::array<std::string_view, 8> kViews{"aten::view",       "aten::reshape", "aten::flatten",
                                                 "aten::contiguous", "aten::squeeze", "aten::to",
                                                 "aten::unsqueeze",  "aten::slice"};

class RangeFinder {
  public:
    explicit RangeFinder(const Graph& graph) : graph_(graph) {}

    /// The model input that a value is a view of, or -1.
    int input_behind(int value) const {
        while (value >= 0) {
            const GraphValue& entry = graph_.values[static_cast<size_t>(value)];
            if (entry.producer < 0) {
                return entry.tensors.empty() ? -1 : graph_.tensors[static_cast<size_t>(entry.tensors[0])].input;
            }
            const GraphOp& op = graph_.ops[static_cast<size_t>(entry.producer)];
            const bool view = std::find(kViews.begin(), kViews.end(), op.kind) != kViews.end();
            value = view && !op.inputs.empty() ? op.inputs[0] : -1;
        }
        return -1;
    }

    const std::vector<int64_t>* shape_of(int value) const {
        const GraphValue& entry = graph_.values[static_cast<size_t>(value)];
        return entry.tensors.empty() ? nullptr : &graph_.tensors[static_cast<size_t>(entry.tensors[0])].shape;
    }

    bool is_integer(int value) const {
        const GraphValue& entry = graph_.values[static_cast<size_t>(value)];
        return entry.is_tensor && !is_floating(graph_.tensors[static_cast<size_t>(entry.tensors[0])].dtype);
    }

  private:
    const Graph& graph_;
};

}  // namespace

std::vector<ValueRange> find_value_ranges(const Graph& graph, int64_t ignore_index) {
    const RangeFinder finder(graph);
    std::vector<ValueRange> ranges;
    auto add = [&](int value, int64_t bound, const std::string& meaning, std::optional<int64_t> ignored) {
        const int input = finder.is_integer(value) ? finder.input_behind(value) : -1;
        if (input >= 0) ranges.push_back({graph.inputs[static_cast<size_t>(input)].name, bound, meaning, ignored});
    };
    for (const GraphOp& op : graph.ops) {
        if (op.inputs.size() < 2) continue;
        const std::string owner = op.module.empty() ? "the model" : "'" + op.module + "'";
        if (op.kind == "aten::embedding" && finder.shape_of(op.inputs[0])) {
            add(op.inputs[1], finder.shape_of(op.inputs[0])->at(0), "rows of the embedding of " + owner, std::nullopt);
        }
        const bool classes = op.kind == "aten::cross_entropy_loss" || op.kind.starts_with("aten::nll_loss");
        const auto* logits = classes ? finder.shape_of(op.inputs[0]) : nullptr;
        if (logits && !logits->empty()) {
            add(op.inputs[1], logits->at(logits->size() > 1 ? 1 : 0), "classes of the loss", ignore_index);
        }
    }
    return ranges;
}

}  // namespace vpp
