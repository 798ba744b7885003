#include "graph/jit_parameters.hpp"

#include <unordered_map>

namespace vpp {

std::vector<JitParameter> list_parameters(const torch::jit::Module& model) {
    std::vector<JitParameter> parameters;
    std::unordered_map<const void*, size_t> index_of;
    auto add = [&](const std::string& name, const at::Tensor& tensor, bool is_buffer) {
        if (!tensor.defined()) return;
        const auto [it, is_new] = index_of.emplace(tensor.unsafeGetTensorImpl(), parameters.size());
        if (is_new) {
            parameters.push_back({name, {}, tensor, is_buffer, nullptr});
        } else {
            parameters[it->second].aliases.push_back(name);
        }
    };
    for (const auto& named : model.named_parameters()) add(named.name, named.value, false);
    for (const auto& named : model.named_buffers()) add(named.name, named.value, true);
    for (const auto& named : model.named_attributes()) {
        const bool known = named.value.isTensor() && index_of.count(named.value.toTensor().unsafeGetTensorImpl());
        if (named.value.isTensor() && !known) add(named.name, named.value.toTensor(), true);
    }
    return parameters;
}

}  // namespace vpp
