#include "device/exact_kernels.hpp"

#include <ATen/OpMathType.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include <tuple>

namespace vpp {

namespace resizing {

namespace {

at::Tensor numbers(int64_t count, const at::Tensor& like) {
    return at::arange(count, like.options());
}

at::Tensor indices(int64_t count, const at::Tensor& like) {
    return at::arange(count, like.options().dtype(at::kLong));
}

/// One element of the input for each of the output.
at::Tensor selection(const at::Tensor& index, int64_t in, const at::Tensor& like) {
    return index.unsqueeze(1).eq(indices(in, like)).to(like.scalar_type());
}

/// Where the elements of the output lie in the input.
at::Tensor places(int64_t in, int64_t out, bool align_corners, std::optional<double> scale, const at::Tensor& like) {
    const at::Tensor element = numbers(out, like);
    if (align_corners) return element * (out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0.0);
    const double step = scale && *scale > 0 ? 1 / *scale : static_cast<double>(in) / static_cast<double>(out);
    return (element + 0.5) * step - 0.5;
}

}  // namespace

at::Tensor adaptive_average(int64_t in, int64_t out, const at::Tensor& like) {
    const at::Tensor element = indices(out, like);
    const at::Tensor begin = (element * in).floor_divide(out).unsqueeze(1);
    const at::Tensor end = ((element + 1) * in + (out - 1)).floor_divide(out).unsqueeze(1);
    const at::Tensor place = indices(in, like);
    const at::Tensor inside = place.ge(begin).logical_and(place.lt(end));
    return inside.to(like.scalar_type()) / (end - begin).to(like.scalar_type());
}

at::Tensor average(int64_t in, int64_t out, const Window& window, const at::Tensor& like) {
    const at::Tensor begin = indices(out, like) * window.step - window.padding;
    const at::Tensor end = (begin + window.size).clamp_max(in + window.padding);  // not of a last one that sticks out
    const at::Tensor place = indices(in, like);
    const at::Tensor inside = place.ge(begin.unsqueeze(1)).logical_and(place.lt(end.unsqueeze(1)));
    const at::Tensor matrix = inside.to(like.scalar_type());
    if (!window.is_divided) return matrix;
    const at::Tensor count = window.counts_padding ? end - begin : end.clamp_max(in) - begin.clamp_min(0);
    return matrix / count.unsqueeze(1).to(like.scalar_type());
}

at::Tensor linear(int64_t in, int64_t out, bool align_corners, std::optional<double> scale, const at::Tensor& like) {
    const at::Tensor place = places(in, out, align_corners, scale, like).clamp_min(0);
    const at::Tensor first = place.floor().clamp_max(static_cast<double>(in - 1));
    const at::Tensor second_share = (place - first).unsqueeze(1);
    const at::Tensor index = first.to(at::kLong);
    return selection(index, in, like) * (1 - second_share) +
           selection((index + 1).clamp_max(in - 1), in, like) * second_share;
}

at::Tensor cubic(int64_t in, int64_t out, bool align_corners, std::optional<double> scale, const at::Tensor& like) {
    constexpr double kA = -0.75;  // of LibTorch's convolution
    const at::Tensor place = places(in, out, align_corners, scale, like);
    const at::Tensor first = place.floor();
    at::Tensor matrix = at::zeros({out, in}, like.options());
    for (int tap = -1; tap <= 2; ++tap) {
        const at::Tensor distance = (place - first - tap).abs();
        const at::Tensor near = ((kA + 2) * distance - (kA + 3)) * distance * distance + 1;
        const at::Tensor far = ((kA * distance - 5 * kA) * distance + 8 * kA) * distance - 4 * kA;
        const at::Tensor share = at::where(distance.le(1), near, far).unsqueeze(1);
        matrix += selection((first.to(at::kLong) + tap).clamp(0, in - 1), in, like) * share;
    }
    return matrix;
}

at::Tensor padding(int64_t in, int64_t before, int64_t after, Padding kind, const at::Tensor& like) {
    const at::Tensor place = indices(in + before + after, like) - before;
    if (kind == Padding::Replicate) return selection(place.clamp(0, in - 1), in, like);
    return selection((in - 1) - (place.abs() - (in - 1)).abs(), in, like);
}

}  // namespace resizing

namespace {

using resizing::Padding;

at::Tensor number_of(const at::Tensor& gradient) {
    return at::zeros({}, gradient.options().dtype(at::toOpMathType(gradient.scalar_type())));
}

/// The sizes of the last dimensions, as many as `count`.
std::vector<int64_t> last_sizes(at::IntArrayRef sizes, size_t count) {
    return {sizes.end() - static_cast<int64_t>(count), sizes.end()};
}

template <size_t num_dims>
at::Tensor adaptive_average_backward(const at::Tensor& gradient, const at::Tensor& input) {
    const std::vector<int64_t> in = last_sizes(input.sizes(), num_dims), out = last_sizes(gradient.sizes(), num_dims);
    std::vector<at::Tensor> matrices;
    for (size_t i = 0; i < num_dims; ++i) {
        matrices.push_back(resizing::adaptive_average(in[i], out[i], number_of(gradient)));
    }
    return resized_backward(gradient, matrices);
}

at::Tensor average3d_backward(const at::Tensor& gradient, const at::Tensor& input, at::IntArrayRef size,
                              at::IntArrayRef step, at::IntArrayRef padding, bool /*ceil*/, bool counts_padding,
                              std::optional<int64_t> divisor) {
    constexpr size_t kNumDims = 3;
    const std::vector<int64_t> in = last_sizes(input.sizes(), kNumDims), out = last_sizes(gradient.sizes(), kNumDims);
    const auto one_of = [](at::IntArrayRef all, size_t i) { return all[all.size() == 1 ? 0 : i]; };
    std::vector<at::Tensor> matrices;
    for (size_t i = 0; i < kNumDims; ++i) {
        const resizing::Window window{one_of(size, i), one_of(step.empty() ? size : step, i), one_of(padding, i),
                                      counts_padding, !divisor};
        matrices.push_back(resizing::average(in[i], out[i], window, number_of(gradient)));
    }
    const at::Tensor result = resized_backward(gradient, matrices);
    return divisor ? result / *divisor : result;
}

template <int64_t num_dims>
at::Tensor adaptive_maximum_backward(const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& indices) {
    return maximum_backward(gradient, input, indices, num_dims);
}

at::Tensor maximum3d_backward(const at::Tensor& gradient, const at::Tensor& input, at::IntArrayRef /*size*/,
                              at::IntArrayRef /*step*/, at::IntArrayRef /*padding*/, at::IntArrayRef /*dilation*/,
                              bool /*ceil*/, const at::Tensor& indices) {
    return maximum_backward(gradient, input, indices, 3);
}

template <int64_t num_dims>
at::Tensor fractional_maximum_backward(const at::Tensor& gradient, const at::Tensor& input, at::IntArrayRef /*size*/,
                                       at::IntArrayRef /*out*/, const at::Tensor& indices) {
    return maximum_backward(gradient, input, indices, num_dims);
}

using Interpolation = decltype(&resizing::linear);
using Scale = std::optional<double>;

at::Tensor interpolation_backward(Interpolation interpolation, const at::Tensor& gradient, c10::SymIntArrayRef out,
                                  c10::SymIntArrayRef in, bool align_corners, const std::vector<Scale>& scales) {
    std::vector<at::Tensor> matrices;
    for (size_t i = 0; i < scales.size(); ++i) {
        const int64_t in_size = in[in.size() - scales.size() + i].guard_int(__FILE__, __LINE__);
        const int64_t out_size = out[i].guard_int(__FILE__, __LINE__);
        matrices.push_back(interpolation(in_size, out_size, align_corners, scales[i], number_of(gradient)));
    }
    return resized_backward(gradient, matrices);
}

at::Tensor linear1d_backward(const at::Tensor& gradient, c10::SymIntArrayRef out, c10::SymIntArrayRef in,
                             bool align_corners, Scale scale) {
    return interpolation_backward(resizing::linear, gradient, out, in, align_corners, {scale});
}

at::Tensor bilinear2d_backward(const at::Tensor& gradient, c10::SymIntArrayRef out, c10::SymIntArrayRef in,
                               bool align_corners, Scale height, Scale width) {
    return interpolation_backward(resizing::linear, gradient, out, in, align_corners, {height, width});
}

at::Tensor bicubic2d_backward(const at::Tensor& gradient, c10::SymIntArrayRef out, c10::SymIntArrayRef in,
                              bool align_corners, Scale height, Scale width) {
    return interpolation_backward(resizing::cubic, gradient, out, in, align_corners, {height, width});
}

at::Tensor trilinear3d_backward(const at::Tensor& gradient, c10::SymIntArrayRef out, c10::SymIntArrayRef in,
                                bool align_corners, Scale depth, Scale height, Scale width) {
    return interpolation_backward(resizing::linear, gradient, out, in, align_corners, {depth, height, width});
}

/// Paddings begin with the last dimension.
template <Padding kind>
at::Tensor padding_backward(const at::Tensor& gradient, const at::Tensor& input, c10::SymIntArrayRef paddings) {
    const size_t num_dims = paddings.size() / 2;
    const std::vector<int64_t> in = last_sizes(input.sizes(), num_dims);
    std::vector<at::Tensor> matrices;
    for (size_t i = 0; i < num_dims; ++i) {
        const size_t at = 2 * (num_dims - 1 - i);
        const int64_t before = paddings[at].guard_int(__FILE__, __LINE__);
        const int64_t after = paddings[at + 1].guard_int(__FILE__, __LINE__);
        matrices.push_back(resizing::padding(in[i], before, after, kind, number_of(gradient)));
    }
    return resized_backward(gradient, matrices);
}

/// LibTorch warns when a kernel gives way to another.
class NoWarnings final : public c10::WarningHandler {
    void process(const c10::Warning& /*warning*/) override {}
};

}  // namespace

at::Tensor resized_backward(const at::Tensor& gradient, const std::vector<at::Tensor>& matrices) {
    at::Tensor result = gradient.to(at::toOpMathType(gradient.scalar_type()));
    int64_t dim = gradient.dim() - static_cast<int64_t>(matrices.size());
    for (const at::Tensor& matrix : matrices) {
        result = at::matmul(result.transpose(dim, -1), matrix).transpose(dim, -1);
        ++dim;
    }
    return result.to(gradient.scalar_type()).contiguous(gradient.suggest_memory_format());
}

at::Tensor maximum_backward(const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& indices,
                            int64_t num_dims) {
    const int64_t first = input.dim() - num_dims;
    const at::Tensor sums = at::zeros(input.sizes(), gradient.options());
    sums.flatten(first).scatter_add_(first, indices.flatten(first), gradient.flatten(first));
    return sums.contiguous(input.suggest_memory_format());
}

std::tuple<at::Tensor, at::Tensor> nll_loss_of_images(const at::Tensor& input, const at::Tensor& target,
                                                      const std::optional<at::Tensor>& weight, int64_t reduction,
                                                      c10::SymInt ignored) {
    const at::Tensor counts = target.ne(ignored.guard_int(__FILE__, __LINE__));
    const at::Tensor label = target.masked_fill(counts.logical_not(), 0);
    const bool is_weighted = weight && weight->defined();
    at::Tensor factor = counts.to(input.scalar_type());
    if (is_weighted) factor = factor * weight->index_select(0, label.flatten()).view_as(label);
    const at::Tensor losses =
        -(input.gather(1, label.unsqueeze(1)).squeeze(1) * factor).masked_fill(counts.logical_not(), 0);
    if (reduction == at::Reduction::None) return {losses, at::zeros({}, input.options())};
    const at::Tensor total = factor.sum();
    return {reduction == at::Reduction::Mean ? losses.sum() / total : losses.sum(), total};
}

void take_over_inexact_kernels() {
    static const torch::Library library = [] {
        NoWarnings no_warnings;
        const c10::WarningUtils::WarningHandlerGuard quiet(&no_warnings);
        torch::Library made(torch::Library::IMPL, "aten", at::DispatchKey::CUDA, __FILE__, __LINE__);
        made.impl("_adaptive_avg_pool2d_backward", &adaptive_average_backward<2>);
        made.impl("_adaptive_avg_pool3d_backward", &adaptive_average_backward<3>);
        made.impl("upsample_linear1d_backward", &linear1d_backward);
        made.impl("upsample_bilinear2d_backward", &bilinear2d_backward);
        made.impl("upsample_bicubic2d_backward", &bicubic2d_backward);
        made.impl("upsample_trilinear3d_backward", &trilinear3d_backward);
        for (const char* name : {"reflection_pad1d_backward", "reflection_pad3d_backward"}) {
            made.impl(name, &padding_backward<Padding::Reflect>);
        }
        for (const char* name :
             {"replication_pad1d_backward", "replication_pad2d_backward", "replication_pad3d_backward"}) {
            made.impl(name, &padding_backward<Padding::Replicate>);
        }
        made.impl("avg_pool3d_backward", &average3d_backward);
        made.impl("adaptive_max_pool2d_backward", &adaptive_maximum_backward<2>);
        made.impl("adaptive_max_pool3d_backward", &adaptive_maximum_backward<3>);
        made.impl("max_pool3d_with_indices_backward", &maximum3d_backward);
        made.impl("fractional_max_pool2d_backward", &fractional_maximum_backward<2>);
        made.impl("fractional_max_pool3d_backward", &fractional_maximum_backward<3>);
        made.impl("nll_loss2d_forward", &nll_loss_of_images);
        return made;
    }();
}

}  // namespace vpp
