#include "graph/jit_parameters.hpp"

#include <ATen/EmptyTensor.h>

#include <algorithm>
#include <unordered_map>

#include "base/error.hpp"
#include "graph/initial_values.hpp"
#include "graph/torch_dtype.hpp"

namespace vpp {

namespace {

/// Where a parameter lies.
struct Extent {
    size_t parameter;
    const std::byte* begin;
    const std::byte* end;
};

Extent extent_of(const at::Tensor& tensor, size_t parameter) {
    const auto* begin = static_cast<const std::byte*>(tensor.const_data_ptr());
    return {parameter, begin,
            begin + at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.itemsize())};
}

/// "parameter float32[4, 4]"; "none" where there is none.
std::string description(const JitParameter* parameter) {
    if (!parameter) return "none";
    const at::Tensor& tensor = parameter->tensor;
    const auto dtype = carried_dtype(tensor.scalar_type());
    std::string text = std::string(parameter->is_buffer ? "buffer " : "parameter ") +
                       (dtype ? std::string(name_of(*dtype)) : c10::toString(tensor.scalar_type())) +
                       shape_text(tensor.sizes().vec());
    for (const std::string& alias : parameter->aliases) text += ", tied to '" + printable(alias) + "'";
    return text;
}

}  // namespace

std::vector<JitParameter> list_parameters(const torch::jit::Module& model) {
    std::vector<JitParameter> parameters;
    std::unordered_map<const void*, size_t> index_of;
    auto add = [&](const std::string& name, const at::Tensor& tensor, bool is_buffer) {
        if (!tensor.defined()) return;
        // No optimizer has it, and its own gradient is nobody's.
        if (is_buffer && tensor.is_leaf()) at::Tensor(tensor).set_requires_grad(false);
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

void take_weights(std::vector<JitParameter>& twin, std::vector<JitParameter> training, const std::string& twin_file,
                  const std::string& file) {
    const auto compare = [&](const std::string& name, const JitParameter* got, const JitParameter* expected) {
        if (description(got) == description(expected)) return;
        throw Error(ErrorKind::BadData,
                    twin_file + " is not the model of " + file + " in eval mode: they differ in '" + printable(name) +
                        "' (got " + description(got) + ", expected " + description(expected) +
                        "); trace two copies of one model, copy.deepcopy(model), behind train() and behind eval()");
    };
    std::unordered_map<std::string, const JitParameter*> left;
    for (const JitParameter& parameter : twin) left.emplace(parameter.name, &parameter);
    for (JitParameter& parameter : training) {
        const auto found = left.find(parameter.name);
        compare(parameter.name, found == left.end() ? nullptr : found->second, &parameter);
        parameter.value = found->second->value;
        left.erase(found);
    }
    for (const JitParameter& parameter : twin) {
        if (left.contains(parameter.name)) compare(parameter.name, &parameter, nullptr);
    }
    twin = std::move(training);
}

void refuse_odd_kinds(const std::vector<JitParameter>& parameters) {
    for (const JitParameter& parameter : parameters) {
        const std::string name = (parameter.is_buffer ? "the buffer '" : "the parameter '") + parameter.name + "' is ";
        if (parameter.tensor.layout() != at::kStrided) {
            throw Error(ErrorKind::BadData, name +
                                                "sparse, which is not supported; keep its indices and values, and "
                                                "make it of them in forward");
        }
        if (carried_dtype(parameter.tensor.scalar_type())) continue;
        throw Error(ErrorKind::BadData, name + "of type " + c10::toString(parameter.tensor.scalar_type()) +
                                            ", which is not supported; keep real numbers in it, as "
                                            "torch.view_as_real gives them");
    }
}

void refuse_shared_memory(const std::vector<JitParameter>& parameters, const std::function<bool(size_t)>& changes) {
    std::vector<Extent> extents;
    for (size_t i = 0; i < parameters.size(); ++i) {
        const at::Tensor& tensor = parameters[i].tensor;
        if (has_data(tensor, parameters[i].is_buffer) && tensor.numel() > 0) extents.push_back(extent_of(tensor, i));
    }
    std::ranges::sort(extents, {}, &Extent::begin);
    for (size_t i = 0; i < extents.size(); ++i) {
        for (size_t k = i + 1; k < extents.size() && extents[k].begin < extents[i].end; ++k) {
            const size_t a = extents[i].parameter, b = extents[k].parameter;
            if (!changes(a) && !changes(b)) continue;
            throw Error(ErrorKind::BadData,
                        "'" + parameters[std::min(a, b)].name + "' and '" + parameters[std::max(a, b)].name +
                            "' are two tensors in one memory, where a step that changes one changes "
                            "the other; make them one (assign the parameter itself, not its .data), "
                            "take the part in forward, or copy it with .clone()");
        }
    }
}

}  // namespace vpp
