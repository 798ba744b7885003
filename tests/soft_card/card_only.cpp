#include "soft_card/card_only.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>

#include <array>
#include <numeric>
#include <optional>
#include <tuple>
#include <vector>

namespace vpp::soft_card {

namespace {

using at::Tensor;
using MaybeTensor = std::optional<Tensor>;

bool is_given(const MaybeTensor& tensor) {
    return tensor && tensor->defined();
}

Tensor with_bias(const Tensor& gates, const MaybeTensor& bias) {
    return is_given(bias) ? gates + *bias : gates;
}

Tensor or_zeros(const MaybeTensor& gradient, const Tensor& like) {
    return is_given(gradient) ? *gradient : at::zeros_like(like);
}

Tensor sum_of_batch(const Tensor& gates, bool has_bias) {
    return has_bias ? gates.sum(0) : Tensor();
}

/// What goes back through a sigmoid that gave `out`.
Tensor through_sigmoid(const Tensor& gradient, const Tensor& out) {
    return gradient * (1 - out) * out;
}

/// What goes back through a tanh that gave `out`.
Tensor through_tanh(const Tensor& gradient, const Tensor& out) {
    return gradient * (1 - out * out);
}

/// Gates: in, forget, cell, out; the workspace has them behind their functions.
std::tuple<Tensor, Tensor, Tensor> lstm_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& cx,
                                             const MaybeTensor& input_bias, const MaybeTensor& hidden_bias) {
    const auto gates = (with_bias(input_gates, input_bias) + with_bias(hidden_gates, hidden_bias)).chunk(4, 1);
    const Tensor in = gates[0].sigmoid(), forget = gates[1].sigmoid(), cell = gates[2].tanh(), out = gates[3].sigmoid();
    const Tensor cy = forget * cx + in * cell;
    return {out * cy.tanh(), cy, at::cat({in, forget, cell, out}, 1)};
}

std::tuple<Tensor, Tensor, Tensor> lstm_cell_backward(const MaybeTensor& grad_hy, const MaybeTensor& grad_cy,
                                                      const Tensor& cx, const Tensor& cy, const Tensor& workspace,
                                                      bool has_bias) {
    const auto gates = workspace.chunk(4, 1);
    const Tensor &in = gates[0], &forget = gates[1], &cell = gates[2], &out = gates[3];
    const Tensor of_hy = or_zeros(grad_hy, cy), wave = cy.tanh();
    const Tensor of_cy = through_tanh(of_hy * out, wave) + or_zeros(grad_cy, cy);
    const Tensor of_gates = at::cat({through_sigmoid(of_cy * cell, in), through_sigmoid(of_cy * cx, forget),
                                     through_tanh(of_cy * in, cell), through_sigmoid(of_hy * wave, out)},
                                    1);
    return {of_gates, of_cy * forget, sum_of_batch(of_gates, has_bias)};
}

/// Gates: reset, update, new; the workspace has them behind their functions, hx, and the hidden part of the new one.
std::tuple<Tensor, Tensor> gru_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& hx,
                                    const MaybeTensor& input_bias, const MaybeTensor& hidden_bias) {
    const auto input = with_bias(input_gates, input_bias).chunk(3, 1);
    const auto hidden = with_bias(hidden_gates, hidden_bias).chunk(3, 1);
    const Tensor reset = (input[0] + hidden[0]).sigmoid(), update = (input[1] + hidden[1]).sigmoid();
    const Tensor made = (input[2] + reset * hidden[2]).tanh();
    return {made + update * (hx - made), at::cat({reset, update, made, hx, hidden[2]}, 1)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> gru_cell_backward(const Tensor& grad_hy, const Tensor& workspace,
                                                                     bool has_bias) {
    const auto kept = workspace.chunk(5, 1);
    const Tensor &reset = kept[0], &update = kept[1], &made = kept[2], &hx = kept[3], &hidden = kept[4];
    const Tensor of_update = through_sigmoid(grad_hy * (hx - made), update);
    const Tensor of_made = through_tanh(grad_hy * (1 - update), made);
    const Tensor of_reset = through_sigmoid(of_made * hidden, reset);
    const Tensor of_input = at::cat({of_reset, of_update, of_made}, 1);
    const Tensor of_hidden = at::cat({of_reset, of_update, of_made * reset}, 1);
    return {of_input, of_hidden, grad_hy * update, sum_of_batch(of_input, has_bias), sum_of_batch(of_hidden, has_bias)};
}

/// y = x * rstd * w, where rstd is one number for each row of the last dimensions.
std::tuple<Tensor, Tensor> rms_norm_backward(const Tensor& grad, const Tensor& input, at::IntArrayRef normalized_shape,
                                             const Tensor& rstd, const MaybeTensor& weight,
                                             std::array<bool, 2> output_mask) {
    const int64_t num_outer = input.dim() - static_cast<int64_t>(normalized_shape.size());
    std::vector<int64_t> outer(static_cast<size_t>(num_outer)), inner(normalized_shape.size());
    std::iota(outer.begin(), outer.end(), 0);
    std::iota(inner.begin(), inner.end(), num_outer);
    const Tensor scale = rstd.to(at::kFloat), unit = input.to(at::kFloat) * scale, of_out = grad.to(at::kFloat);
    const Tensor of_unit = is_given(weight) ? of_out * weight->to(at::kFloat) : of_out;
    const Tensor of_input = scale * (of_unit - unit * (of_unit * unit).mean(inner, /*keepdim=*/true));
    Tensor of_weight;
    if (output_mask[1] && is_given(weight)) {
        of_weight = (outer.empty() ? of_out * unit : (of_out * unit).sum(outer)).to(weight->scalar_type());
    }
    return {output_mask[0] ? of_input.to(input.scalar_type()) : Tensor(), of_weight};
}

}  // namespace

void add_card_only_ops() {
    auto& library = *new torch::Library(torch::Library::IMPL, "aten", at::DispatchKey::CPU, __FILE__, __LINE__);
    library.impl("_thnn_fused_lstm_cell", lstm_cell);
    library.impl("_thnn_fused_lstm_cell_backward_impl", lstm_cell_backward);
    library.impl("_thnn_fused_gru_cell", gru_cell);
    library.impl("_thnn_fused_gru_cell_backward", gru_cell_backward);
    library.impl("_fused_rms_norm_backward", rms_norm_backward);
}

}  // namespace vpp::soft_card
