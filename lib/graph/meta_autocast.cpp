#include "graph/meta_autocast.hpp"

#include <ATen/autocast_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <algorithm>
#include <set>
#include <string>

#include "graph/ivalue_tensors.hpp"

namespace vpp {

namespace {

// LibTorch has no tensors of this device of its own, so that its key is free to stand for meta.
constexpr c10::DeviceType kStandsForMeta = c10::DeviceType::PrivateUse1;
constexpr c10::DispatchKey kKey = c10::DispatchKey::AutocastPrivateUse1;

bool is_cast(const at::Tensor& tensor) {
    return tensor.is_floating_point() && tensor.scalar_type() != at::kDouble;
}

at::ScalarType target_of(CastRule rule, const std::vector<at::Tensor>& taken, at::ScalarType lower) {
    if (rule != CastRule::Widest) return rule == CastRule::Lower ? lower : at::kFloat;
    const bool is_float = std::any_of(taken.begin(), taken.end(),
                                      [](const at::Tensor& tensor) { return tensor.scalar_type() == at::kFloat; });
    return is_float ? at::kFloat : lower;
}

/// Stands before every op that is called inside a scope.
void cast_arguments(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
    const CastRule rule = cast_rule(op);
    if (rule == CastRule::None) {
        return op.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kKey), stack);
    }
    const c10::impl::ExcludeDispatchKeyGuard no_casts_inside(kKey);
    const size_t begin = stack->size() - op.schema().arguments().size();
    std::vector<at::Tensor> taken;
    for (size_t i = begin; i < stack->size(); ++i) {
        for (at::Tensor& tensor : tensors_in((*stack)[i])) taken.push_back(std::move(tensor));
    }
    const at::ScalarType target = target_of(rule, taken, at::autocast::get_autocast_dtype(kStandsForMeta));
    for (size_t i = begin; i < stack->size(); ++i) {
        c10::IValue& argument = (*stack)[i];
        if (tensors_in(argument).empty()) continue;
        argument = map_tensors(argument, [&](const at::Tensor& tensor) {
            return is_cast(tensor) && tensor.is_meta() ? tensor.to(target) : tensor;
        });
    }
    op.callBoxed(stack);
}

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, library) {
    library.fallback(torch::CppFunction::makeFromBoxedFunction<&cast_arguments>());
}

}  // namespace

CastRule cast_rule(const c10::OperatorHandle& op) {
    static const std::set<std::string> kLower{"aten::_addmm_activation",
                                              "aten::_convolution",
                                              "aten::_native_multi_head_attention",
                                              "aten::addbmm",
                                              "aten::addmm",
                                              "aten::baddbmm",
                                              "aten::bmm",
                                              "aten::conv1d",
                                              "aten::conv2d",
                                              "aten::conv3d",
                                              "aten::conv_tbc",
                                              "aten::conv_transpose1d",
                                              "aten::conv_transpose2d",
                                              "aten::conv_transpose3d",
                                              "aten::linalg_vecdot",
                                              "aten::linear",
                                              "aten::matmul",
                                              "aten::mkldnn_rnn_layer",
                                              "aten::mm",
                                              "aten::prelu",
                                              "aten::scaled_dot_product_attention"};
    static const std::set<std::string> kWidest{"aten::cat", "aten::index_copy", "aten::stack"};
    if (!op.hasKernelForDispatchKey(c10::DispatchKey::AutocastCPU)) return CastRule::None;
    const std::string& name = op.schema().name();
    if (kLower.contains(name)) return CastRule::Lower;
    return kWidest.contains(name) ? CastRule::Widest : CastRule::Float;
}

int64_t bytes_of_casts(const c10::OperatorHandle& op, const std::vector<at::Tensor>& taken, c10::ScalarType lower) {
    const CastRule rule = cast_rule(op);
    if (rule == CastRule::None) return 0;
    const at::ScalarType target = target_of(rule, taken, lower);
    int64_t bytes = 0;
    for (const at::Tensor& tensor : taken) {
        if (is_cast(tensor) && tensor.scalar_type() != target) {
            bytes += tensor.numel() * static_cast<int64_t>(c10::elementSize(target));
        }
    }
    return bytes;
}

MetaAutocastScope::MetaAutocastScope(std::optional<c10::ScalarType> dtype) : scope_(kStandsForMeta, dtype) {}

}  // namespace vpp
