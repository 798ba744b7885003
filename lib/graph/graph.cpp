#include "graph/graph.hpp"

#include <algorithm>
#include <map>

namespace vpp {

std::string GraphTensor::type_text() const {
    const std::string type = is_complex ? complex_name(dtype) : std::string(name_of(dtype));
    return type + shape_text(shape);
}

bool GraphTensor::requires_grad_at(int op) const {
    const auto behind = std::lower_bound(gradient_flips.begin(), gradient_flips.end(), op);
    return requires_grad != ((behind - gradient_flips.begin()) % 2 == 1);
}

bool GraphOp::counts_classes() const {
    return (kind == "aten::cross_entropy_loss" || kind.starts_with("aten::nll_loss")) && !ignored_targets.empty();
}

bool lies_in(const std::string& module, const std::string& outer) {
    return module.starts_with(outer) && (module.size() == outer.size() || module[outer.size()] == '.');
}

const GraphTensor* Graph::tensor_of(int value) const {
    const GraphValue& entry = values[static_cast<size_t>(value)];
    return entry.is_tensor ? &tensors[static_cast<size_t>(entry.tensors[0])] : nullptr;
}

int Graph::num_legal_cuts() const {
    if (cuts.empty()) return 0;
    return static_cast<int>(std::count_if(cuts.begin() + 1, cuts.end(), [](const GraphCut& cut) { return cut.legal; }));
}

std::pair<std::string, int> Graph::commonest_refusal() const {
    std::map<std::string, int> times;
    std::pair<std::string, int> commonest;
    for (size_t i = 1; i < cuts.size(); ++i) {
        if (!cuts[i].legal) ++times[cuts[i].reason];
    }
    for (size_t i = 1; i < cuts.size(); ++i) {
        if (!cuts[i].legal && times[cuts[i].reason] > commonest.second) commonest = *times.find(cuts[i].reason);
    }
    return commonest;
}

std::string numbered_op_text(const Graph& graph, int op) {
    const GraphOp& entry = graph.ops[static_cast<size_t>(op)];
    return "op " + std::to_string(op) + " (" + entry.kind + (entry.module.empty() ? "" : " of '" + entry.module + "'") +
           ")";
}

void check_has_parameters(const Graph& graph, const std::optional<SourcePosition>& where) {
    const auto is_parameter = [](const GraphParameter& entry) { return !entry.is_buffer; };
    if (std::ranges::any_of(graph.parameters, is_parameter)) return;
    throw Error(ErrorKind::BadData,
                "the model has no parameters, so there is nothing to train; torch.jit.freeze and "
                "torch.jit.optimize_for_inference make constants of them: save what torch.jit.script or "
                "torch.jit.trace gave",
                where);
}

}  // namespace vpp
