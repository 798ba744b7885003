#include "program/counted_targets.hpp"

#include <algorithm>
#include <set>

#include "base/error.hpp"

namespace vpp {

namespace {

/// The ops and the model's inputs that a value of an op is made from.
class Origin {
  public:
    Origin(const Graph& graph, int value, int before) : graph_(graph), before_(before) { follow(value); }

    /// Whether these are all: no weights, nothing random.
    bool is_data_alone() const { return is_data_alone_; }
    std::vector<int> ops() const { return {ops_.begin(), ops_.end()}; }
    std::vector<int> inputs() const { return {inputs_.begin(), inputs_.end()}; }

  private:
    void follow(int value) {
        const GraphValue& entry = graph_.values[static_cast<size_t>(value)];
        for (int tensor : entry.tensors) follow_writers(graph_.tensors[static_cast<size_t>(tensor)]);
        if (entry.producer >= 0) return follow_op(entry.producer);
        const GraphTensor* tensor = graph_.tensor_of(value);
        if (tensor && tensor->input >= 0) {
            inputs_.insert(tensor->input);
        } else {
            is_data_alone_ = false;
        }
    }

    void follow_op(int number) {
        if (!is_data_alone_ || !ops_.insert(number).second) return;
        const GraphOp& op = graph_.ops[static_cast<size_t>(number)];
        if (op.random || !op.parameters.empty()) is_data_alone_ = false;
        for (int value : op.inputs) follow(value);
    }

    void follow_writers(const GraphTensor& tensor) {
        for (int writer : tensor.writers) {
            if (writer < before_) follow_op(writer);
        }
    }

    const Graph& graph_;
    int before_;
    bool is_data_alone_ = true;
    std::set<int> ops_, inputs_;
};

}  // namespace

OpSelection CountedTargets::selection(const Graph& graph) const {
    OpSelection selected{ops, {}, {}, {value}};
    for (int input : inputs) selected.live_ins.push_back(graph.inputs[static_cast<size_t>(input)].value);
    return selected;
}

std::optional<CountedTargets> find_counted_targets(const Graph& graph) {
    const int producer = graph.values[static_cast<size_t>(graph.loss)].producer;
    if (producer < 0) return std::nullopt;
    const GraphOp& loss = graph.ops[static_cast<size_t>(producer)];
    if (!loss.counts_classes()) return std::nullopt;
    const int value = loss.inputs[1];
    const GraphTensor* targets = graph.tensor_of(value);
    if (!targets || is_floating(targets->dtype) || targets->dtype == DType::Bool) return std::nullopt;
    const Origin origin(graph, value, producer);
    if (!origin.is_data_alone()) return std::nullopt;
    return CountedTargets{origin.inputs(), origin.ops(), value, loss.ignored_targets[0]};
}

CountedTargets counted_targets(const Plan& plan, const Graph& graph) {
    if (const std::optional<CountedTargets> found = find_counted_targets(graph)) return *found;
    throw Error(ErrorKind::Plan,
                "model.loss_reduction = \"target_mean\" counts before a step targets that are integers and made from "
                "data alone, and the loss has other ones; let forward return its scores and add a [loss], or take "
                "\"mean\"",
                plan.where("model.loss_reduction"));
}

}  // namespace vpp
