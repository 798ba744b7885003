#pragma once
// Backward passes for cards where LibTorch has none that gives the same bits every time: its own add with atomics, in
// an order that nobody decides, and throw where only exact kernels may run. Resizing, padding and averages are products
// with one matrix a dimension, so their backward is products with the same matrices, which cuBLAS sums in one order;
// that of a maximum is a sum by index, which LibTorch has in an exact form. What is left is in device/host_kernels.hpp.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

namespace vpp {

/// [out, in]: how much an element of the output has of each of the input, along one dimension; on `like`'s device, of
/// its dtype.
namespace resizing {

enum class Padding { Reflect, Replicate };

at::Tensor adaptive_average(int64_t in, int64_t out, const at::Tensor& like);
/// One dimension of what an average is taken over.
struct Window {
    int64_t size = 1, step = 1, padding = 0;
    bool counts_padding = true;
    bool is_divided = true;  ///< by how many elements there are
};
at::Tensor average(int64_t in, int64_t out, const Window& window, const at::Tensor& like);
/// `scale`: the one that the op was given, if any; `align_corners` as LibTorch has it.
at::Tensor linear(int64_t in, int64_t out, bool align_corners, std::optional<double> scale, const at::Tensor& like);
at::Tensor cubic(int64_t in, int64_t out, bool align_corners, std::optional<double> scale, const at::Tensor& like);
/// Negative: elements are left out.
at::Tensor padding(int64_t in, int64_t before, int64_t after, Padding kind, const at::Tensor& like);

}  // namespace resizing

/// The gradient of what was resized by `matrices` along its last dimensions; in float32 where it is of half precision.
at::Tensor resized_backward(const at::Tensor& gradient, const std::vector<at::Tensor>& matrices);

/// The gradient of what a maximum was taken of, over the last `num_dims` dimensions. `indices`: of the largest
/// elements, counted over these dimensions of `input`.
at::Tensor maximum_backward(const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& indices,
                            int64_t num_dims);

/// aten::nll_loss2d_forward: the output, and the sum of the weights that it was divided by.
std::tuple<at::Tensor, at::Tensor> nll_loss_of_images(const at::Tensor& input, const at::Tensor& target,
                                                      const std::optional<at::Tensor>& weight, int64_t reduction,
                                                      c10::SymInt ignored);

/// aten::max_unpool2d and 3d: `input` at its `indices`, counted over the last dimensions, whose sizes `output` has; of
/// several at one place the last.
at::Tensor unpooled_maximum(const at::Tensor& input, const at::Tensor& indices, at::IntArrayRef output);

/// aten::put_: writes or adds to elements counted over all of `self`.
at::Tensor& put(at::Tensor& self, const at::Tensor& index, const at::Tensor& source, bool accumulate);

/// Puts them, and those of the host, in the place of LibTorch's own, for all threads of this process and until its end.
void take_over_inexact_kernels();

}  // namespace vpp
