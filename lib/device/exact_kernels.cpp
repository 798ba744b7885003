#include "device/exact_kernels.hpp"

#include <ATen/OpMathType.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/grid_sampler_2d.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include <array>
#include <tuple>

#include "device/grid_sampling.hpp"
#include "device/host_kernels.hpp"

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

/// All elements of the input from a begin to an end for each of the output.
at::Tensor windows(const at::Tensor& begin, const at::Tensor& end, int64_t in, const at::Tensor& like) {
    const at::Tensor place = indices(in, like);
    return place.ge(begin.unsqueeze(1)).logical_and(place.lt(end.unsqueeze(1))).to(like.scalar_type());
}

at::Tensor divided(const at::Tensor& matrix, const at::Tensor& counts) {
    return matrix / counts.unsqueeze(1).to(matrix.scalar_type());
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
    const at::Tensor begin = (element * in).floor_divide(out);
    const at::Tensor end = ((element + 1) * in + (out - 1)).floor_divide(out);
    return divided(windows(begin, end, in, like), end - begin);
}

at::Tensor average(int64_t in, int64_t out, const Window& window, const at::Tensor& like) {
    const at::Tensor begin = indices(out, like) * window.step - window.padding;
    const at::Tensor end = (begin + window.size).clamp_max(in + window.padding);  // not of a last one that sticks out
    const at::Tensor matrix = windows(begin, end, in, like);
    if (!window.is_divided) return matrix;
    return divided(matrix, window.counts_padding ? end - begin : end.clamp_max(in) - begin.clamp_min(0));
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

/// Of what was resized along its last dimensions, as many as `num_dims`. `matrix_of(i, in, out, like)`: of the i-th of
/// them.
template <typename MatrixOf>
at::Tensor resizing_backward(const at::Tensor& gradient, at::IntArrayRef input, size_t num_dims, MatrixOf matrix_of) {
    const at::Tensor like = at::zeros({}, gradient.options().dtype(at::toOpMathType(gradient.scalar_type())));
    const at::IntArrayRef in = input.slice(input.size() - num_dims);
    const at::IntArrayRef out = gradient.sizes().slice(input.size() - num_dims);
    std::vector<at::Tensor> matrices;
    for (size_t i = 0; i < num_dims; ++i) matrices.push_back(matrix_of(i, in[i], out[i], like));
    return resized_backward(gradient, matrices);
}

template <size_t num_dims>
at::Tensor adaptive_average_backward(const at::Tensor& gradient, const at::Tensor& input) {
    return resizing_backward(gradient, input.sizes(), num_dims,
                             [](size_t, int64_t in, int64_t out, const at::Tensor& like) {
                                 return resizing::adaptive_average(in, out, like);
                             });
}

at::Tensor average3d_backward(const at::Tensor& gradient, const at::Tensor& input, at::IntArrayRef size,
                              at::IntArrayRef step, at::IntArrayRef padding, bool /*ceil*/, bool counts_padding,
                              std::optional<int64_t> divisor) {
    const auto one_of = [](at::IntArrayRef all, size_t i) { return all[all.size() == 1 ? 0 : i]; };
    const at::Tensor result =
        resizing_backward(gradient, input.sizes(), 3, [&](size_t i, int64_t in, int64_t out, const at::Tensor& like) {
            const resizing::Window window{one_of(size, i), one_of(step.empty() ? size : step, i), one_of(padding, i),
                                          counts_padding, !divisor};
            return resizing::average(in, out, window, like);
        });
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

at::Tensor interpolation_backward(Interpolation interpolation, const at::Tensor& gradient, c10::SymIntArrayRef input,
                                  bool align_corners, const std::vector<Scale>& scales) {
    return resizing_backward(gradient, C10_AS_INTARRAYREF_SLOW(input), scales.size(),
                             [&](size_t i, int64_t in, int64_t out, const at::Tensor& like) {
                                 return interpolation(in, out, align_corners, scales[i], like);
                             });
}

at::Tensor linear1d_backward(const at::Tensor& gradient, c10::SymIntArrayRef /*out*/, c10::SymIntArrayRef in,
                             bool align_corners, Scale scale) {
    return interpolation_backward(resizing::linear, gradient, in, align_corners, {scale});
}

at::Tensor bilinear2d_backward(const at::Tensor& gradient, c10::SymIntArrayRef /*out*/, c10::SymIntArrayRef in,
                               bool align_corners, Scale height, Scale width) {
    return interpolation_backward(resizing::linear, gradient, in, align_corners, {height, width});
}

at::Tensor bicubic2d_backward(const at::Tensor& gradient, c10::SymIntArrayRef /*out*/, c10::SymIntArrayRef in,
                              bool align_corners, Scale height, Scale width) {
    return interpolation_backward(resizing::cubic, gradient, in, align_corners, {height, width});
}

at::Tensor trilinear3d_backward(const at::Tensor& gradient, c10::SymIntArrayRef /*out*/, c10::SymIntArrayRef in,
                                bool align_corners, Scale depth, Scale height, Scale width) {
    return interpolation_backward(resizing::linear, gradient, in, align_corners, {depth, height, width});
}

/// Paddings begin with the last dimension.
template <Padding kind>
at::Tensor padding_backward(const at::Tensor& gradient, const at::Tensor& input, c10::SymIntArrayRef paddings) {
    const at::IntArrayRef sizes = C10_AS_INTARRAYREF_SLOW(paddings);
    const size_t num_dims = sizes.size() / 2;
    return resizing_backward(gradient, input.sizes(), num_dims,
                             [&](size_t i, int64_t in, int64_t /*out*/, const at::Tensor& like) {
                                 const size_t place = 2 * (num_dims - 1 - i);
                                 return resizing::padding(in, sizes[place], sizes[place + 1], kind, like);
                             });
}

at::Tensor unpooled_maximum2d(const at::Tensor& input, const at::Tensor& indices, c10::SymIntArrayRef output) {
    return unpooled_maximum(input, indices, C10_AS_INTARRAYREF_SLOW(output));
}

at::Tensor unpooled_maximum3d(const at::Tensor& input, const at::Tensor& indices, c10::SymIntArrayRef output,
                              at::IntArrayRef /*step*/, at::IntArrayRef /*padding*/) {
    return unpooled_maximum(input, indices, C10_AS_INTARRAYREF_SLOW(output));
}

/// What at::grid_sampler leaves to cuDNN: bilinear, zeros outside, corners aligned. Its backward pass adds with atomics
/// (cudnnSpatialTfSamplerBackward in cuDNN's guide, "Odds and Ends"), and LibTorch does not throw there.
at::Tensor bilinear_grid_sampler(const at::Tensor& input, const at::Tensor& grid) {
    return at::grid_sampler_2d(input, grid, 0, 0, true);
}

std::tuple<at::Tensor, at::Tensor> numbered_grid_sampler_backward(const at::Tensor& gradient, const at::Tensor& input,
                                                                  const at::Tensor& grid, int64_t interpolation,
                                                                  int64_t padding, bool align_corners,
                                                                  std::array<bool, 2> wanted) {
    return grid_sampler_backward(gradient, input, grid, static_cast<GridInterpolation>(interpolation),
                                 static_cast<GridPadding>(padding), align_corners, wanted);
}

std::tuple<at::Tensor, at::Tensor> bilinear_grid_sampler_backward(const at::Tensor& input, const at::Tensor& grid,
                                                                  const at::Tensor& gradient) {
    return grid_sampler_backward(gradient, input, grid, GridInterpolation::Linear, GridPadding::Zeros, true,
                                 {true, true});
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
    const at::Tensor counts = target.ne(ignored.expect_int());
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

at::Tensor unpooled_maximum(const at::Tensor& input, const at::Tensor& indices, at::IntArrayRef output) {
    const auto first = input.dim() - static_cast<int64_t>(output.size());
    std::vector<int64_t> sizes = input.sizes().slice(0, static_cast<size_t>(first)).vec();
    sizes.insert(sizes.end(), output.begin(), output.end());
    at::Tensor result = at::zeros(sizes, input.options());
    result.flatten(first).scatter_(first, indices.flatten(first), input.flatten(first));
    return result;
}

at::Tensor& put(at::Tensor& self, const at::Tensor& index, const at::Tensor& source, bool accumulate) {
    TORCH_CHECK_INDEX(index.scalar_type() == at::kLong, "put_(): Expected a long tensor for index, but got ",
                      index.scalar_type());
    TORCH_CHECK_INDEX(index.numel() == source.numel(),
                      "put_(): Expected source and index to have the same number of "
                      "elements, but got ",
                      source.numel(), " and ", index.numel());
    const at::Tensor flat = self.flatten();
    flat.index_put_({index.flatten()}, source.flatten(), accumulate);
    if (!flat.is_alias_of(self)) self.copy_(flat.view_as(self));
    return self;
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
        made.impl("max_unpool2d", &unpooled_maximum2d);
        made.impl("max_unpool3d", &unpooled_maximum3d);
        made.impl("put_", &put);
        made.impl("grid_sampler_2d_backward", &numbered_grid_sampler_backward);
        made.impl("grid_sampler_3d_backward", &numbered_grid_sampler_backward);
        made.impl("cudnn_grid_sampler", &bilinear_grid_sampler);
        made.impl("cudnn_grid_sampler_backward", &bilinear_grid_sampler_backward);
        add_host_kernels(made);  // behind what some of them leave to the card
        return made;
    }();
}

}  // namespace vpp
