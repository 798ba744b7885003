#include "stage/weights.hpp"

#include <algorithm>
#include <string>

#include "base/error.hpp"
#include "device/repeated_elements.hpp"
#include "graph/torch_errors.hpp"

namespace vpp {

namespace {

/// On the source's device, with the strides that the file gives. A lack of memory names the stage.
at::Tensor placed_weight(Source& source, int parameter, int stage) {
    at::Tensor tensor = source.weight(parameter);
    if (source.device().is_cpu()) return tensor;
    at::Tensor placed;
    run_known([&] { placed = copy_with_repeats(tensor, source.device()).set_requires_grad(tensor.requires_grad()); },
              "stage " + std::to_string(stage) + ", its weights: ");
    return placed;
}

}  // namespace

void Weights::load(Source& source, const Split& split, const std::vector<int>& stages) {
    device_ = source.device();
    for (int stage : stages) {
        const StageSpec& spec = split.stages[static_cast<size_t>(stage)];
        for (int parameter : spec.parameters) {
            tensors_.emplace(parameter, placed_weight(source, parameter, stage));
            owned_.push_back(parameter);
        }
    }
    for (int stage : stages) {
        for (int parameter : split.stages[static_cast<size_t>(stage)].borrowed) {
            if (!contains(parameter)) tensors_.emplace(parameter, placed_weight(source, parameter, stage));
        }
    }
    std::sort(owned_.begin(), owned_.end());
}

void Weights::load_missing(Source& source, const Graph& graph, const Split& split, const std::vector<int>& stages) {
    for (int stage : stages) {
        const StageSpec& spec = split.stages[static_cast<size_t>(stage)];
        for (const std::vector<int>* list : {&spec.parameters, &spec.borrowed}) {
            for (int parameter : *list) {
                const bool used = !graph.parameters[static_cast<size_t>(parameter)].uses.empty();
                if (used && !contains(parameter)) tensors_.emplace(parameter, placed_weight(source, parameter, stage));
            }
        }
    }
}

Weights Weights::with(const std::map<int, at::Tensor>& others) const {
    Weights changed = *this;
    for (const auto& [parameter, tensor] : others) changed.tensors_.at(parameter) = tensor;
    return changed;
}

std::vector<int> Weights::held() const {
    std::vector<int> parameters;
    for (const auto& [parameter, tensor] : tensors_) parameters.push_back(parameter);
    return parameters;
}

const at::Tensor& Weights::at(int parameter) const {
    const auto found = tensors_.find(parameter);
    check(found != tensors_.end(), "a stage uses only weights that its rank holds");
    return found->second;
}

}  // namespace vpp
