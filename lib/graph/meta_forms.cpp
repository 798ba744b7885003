#include "graph/meta_forms.hpp"

#include <ATen/SDPBackend.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/_fused_sdp_choice.h>
#include <ATen/ops/_scaled_dot_product_attention_math.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/sum.h>

#include <array>
#include <cstring>
#include <optional>

#include "graph/flops.hpp"

namespace vpp {

namespace {

/// Brings along whether there is a gradient, whose backward reads the tensor.
at::Tensor kept(const at::Tensor& tensor) {
    return (tensor * tensor).sum();
}

/// layer_norm(input, shape, weight, bias, eps, cudnn) -> as the input, one row behind the other in memory.
at::Tensor layer_norm_form(const std::vector<c10::IValue>& inputs, at::Device /*target*/) {
    const at::Tensor input = inputs.at(0).toTensor();
    const int64_t num_last = static_cast<int64_t>(inputs.at(1).toIntVector().size());
    TORCH_CHECK(num_last <= input.dim() && inputs.at(1).toIntVector() == input.sizes().slice(input.dim() - num_last),
                "the input does not end with the normalized shape ", inputs.at(1));
    at::Tensor output = at::empty(input.sizes(), input.options()) + kept(input);
    for (const size_t i : {2, 3}) {
        if (!inputs.at(i).isNone()) output = output + inputs.at(i).toTensor().sum().to(input.scalar_type());
    }
    return output;
}

/// scaled_dot_product_attention(query [n, h, t, d], key, value [n, h, s, e], mask, dropout, causal, scale, grouped)
/// -> [n, h, t, e]. Flash kernels give it the query's order in memory and keep what they took. Where there is none it
/// is the formula, op by op, which keeps several [n, h, t, s]: so where the CPU drops scores out, as cards have flash
/// kernels for that too.
at::Tensor attention_form(const std::vector<c10::IValue>& inputs, at::Device target) {
    const at::Tensor query = inputs.at(0).toTensor(), key = inputs.at(1).toTensor(), value = inputs.at(2).toTensor();
    const double dropout = inputs.at(4).toDouble();
    const bool causal = inputs.at(5).toBool(), grouped = inputs.at(7).toBool();
    const auto scale = inputs.at(6).toOptional<double>();
    const auto mask = inputs.at(3).toOptional<at::Tensor>();
    const auto mask_twin = mask ? std::optional(cpu_twin(*mask)) : std::nullopt;
    const int64_t choice = at::_fused_sdp_choice(cpu_twin(query), cpu_twin(key), cpu_twin(value), mask_twin,
                                                 target.is_cpu() ? dropout : 0, causal, scale, grouped);
    if (choice == static_cast<int64_t>(at::SDPBackend::flash_attention)) {
        count_attention(query.sizes(), key.sizes());
        return at::empty_like(query) + (kept(query) + kept(key) + kept(value));
    }
    return std::get<0>(at::_scaled_dot_product_attention_math(query, key, value, mask, dropout, causal,
                                                              /*dropout_mask=*/std::nullopt, scale, grouped));
}

struct Row {
    const char* kind;
    MetaForm form;
};

constexpr std::array<Row, 2> kRows{
    {{"aten::layer_norm", layer_norm_form}, {"aten::scaled_dot_product_attention", attention_form}}};

}  // namespace

at::Tensor cpu_twin(const at::Tensor& meta) {
    return at::from_blob(nullptr, meta.sizes(), meta.strides(), meta.options().device(at::kCPU))
        .set_requires_grad(meta.requires_grad());
}

MetaForm find_meta_form(const char* kind) {
    for (const Row& row : kRows) {
        if (std::strcmp(row.kind, kind) == 0) return row.form;
    }
    return nullptr;
}

}  // namespace vpp
