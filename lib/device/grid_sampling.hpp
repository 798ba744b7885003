#pragma once
// The backward pass of grid samplers for cards, made of ops that are exact: the gradient of the input is one sum by
// index over all elements that were read. Places, weights and slopes are those of LibTorch's kernels
// (ATen/native/GridSampler.h).
#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <tuple>

namespace vpp {

/// As LibTorch numbers them.
enum class GridInterpolation : int64_t { Linear = 0, Nearest = 1, Cubic = 2 };
enum class GridPadding : int64_t { Zeros = 0, Border = 1, Reflection = 2 };

/// The gradients of `input` [n, c, in...] and of `grid` [n, out..., d] for `gradient` [n, c, out...], with d of 2 or 3
/// dimensions each; undefined where `wanted` says so. Half precision is computed in float32.
/// Requires: not Cubic.
std::tuple<at::Tensor, at::Tensor> grid_sampler_backward(const at::Tensor& gradient, const at::Tensor& input,
                                                         const at::Tensor& grid, GridInterpolation interpolation,
                                                         GridPadding padding, bool align_corners,
                                                         std::array<bool, 2> wanted);

}  // namespace vpp
