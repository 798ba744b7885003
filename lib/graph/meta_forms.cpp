#include "graph/meta_forms.hpp"

#include <ATen/SDPBackend.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/_fused_sdp_choice.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/sum.h>

#include <array>
#include <cstring>
#include <optional>

namespace vpp {

namespace {

/// Brings along whether there is a gradient, whose backward reads the tensor.
at::Tensor kept(const at::Tensor& tensor) {
    return (tensor * tensor).sum();
}

/// layer_norm(input, shape, weight, bias, eps, cudnn) -> as the input, one row behind the other in memory.
at::Tensor layer_norm_form(const std::vector<c10::IValue>& inputs) {
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

/// A tensor on the CPU of which nobody reads the numbers.
at::Tensor cpu_twin(const at::Tensor& meta) {
    return at::from_blob(nullptr, meta.sizes(), meta.strides(), meta.options().device(at::kCPU))
        .set_requires_grad(meta.requires_grad());
}

/// scaled_dot_product_attention(query [n, h, t, d], key, value [n, h, s, e], mask, dropout, causal, scale, grouped)
/// -> [n, h, t, e]. The CPU's flash kernel gives it the query's order in memory.
at::Tensor attention_form(const std::vector<c10::IValue>& inputs) {
    const at::Tensor query = inputs.at(0).toTensor(), key = inputs.at(1).toTensor(), value = inputs.at(2).toTensor();
    const bool grouped = inputs.at(7).toBool();
    TORCH_CHECK(query.dim() == 4 && value.dim() == 4 && query.size(0) == value.size(0), "no form for these shapes");
    TORCH_CHECK(grouped || query.size(1) == value.size(1), "no form for these heads");
    std::optional<at::Tensor> mask;
    if (!inputs.at(3).isNone()) mask = cpu_twin(inputs.at(3).toTensor());
    const int64_t choice =
        at::_fused_sdp_choice(cpu_twin(query), cpu_twin(key), cpu_twin(value), mask, inputs.at(4).toDouble(),
                              inputs.at(5).toBool(), inputs.at(6).toOptional<double>(), grouped);
    const bool flash = choice == static_cast<int64_t>(at::SDPBackend::flash_attention);
    std::vector<int64_t> shape = query.sizes().vec();
    shape.back() = value.size(3);
    const at::Tensor output = flash ? at::empty_like(query) : at::empty(shape, query.options());
    return output + (kept(query) + kept(key) + kept(value));
}

struct Row {
    const char* kind;
    MetaForm form;
};

constexpr std::array<Row, 2> kRows{
    {{"aten::layer_norm", layer_norm_form}, {"aten::scaled_dot_product_attention", attention_form}}};

}  // namespace

MetaForm find_meta_form(const char* kind) {
    for (const Row& row : kRows) {
        if (std::strcmp(row.kind, kind) == 0) return row.form;
    }
    return nullptr;
}

}  // namespace vpp
