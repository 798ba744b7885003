// Over numbers that every order of sums gets right, so that the gradients have the bits of the CPU's own.
#include "device/grid_sampling.hpp"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "device/device.hpp"
#include "support/far_device.hpp"

namespace vpp {
namespace {

at::Tensor small_numbers(const std::vector<int64_t>& sizes, int64_t factor) {
    return at::arange(c10::multiply_integers(sizes)).mul(factor).remainder(13).sub(6).to(at::kFloat).view(sizes);
}

struct Sample {
    at::Tensor gradient, input, grid;
};

/// The grid has eighths from -1.5 to 1.5, so that some of it lies outside.
Sample sample(const std::vector<int64_t>& in, const std::vector<int64_t>& out) {
    std::vector<int64_t> gradient{2, 3}, input{2, 3}, grid{2};
    gradient.insert(gradient.end(), out.begin(), out.end());
    input.insert(input.end(), in.begin(), in.end());
    grid.insert(grid.end(), out.begin(), out.end());
    grid.push_back(static_cast<int64_t>(in.size()));
    return {small_numbers(gradient, 5), small_numbers(input, 7),
            at::arange(c10::multiply_integers(grid)).mul(11).remainder(25).sub(12).div(8).view(grid)};
}

using Gradients = std::tuple<at::Tensor, at::Tensor>;

Gradients own_of(const Sample& sample, GridInterpolation interpolation, GridPadding padding, bool align_corners) {
    const auto op = sample.input.dim() == 4 ? at::grid_sampler_2d_backward : at::grid_sampler_3d_backward;
    return op(sample.gradient, sample.input, sample.grid, static_cast<int64_t>(interpolation),
              static_cast<int64_t>(padding), align_corners, {true, true});
}

Gradients made_of(const Sample& sample, GridInterpolation interpolation, GridPadding padding, bool align_corners,
                  std::array<bool, 2> wanted = {true, true}) {
    const at::Device device = test::test_device();
    start_device(device);
    return grid_sampler_backward(sample.gradient.to(device), sample.input.to(device), sample.grid.to(device),
                                 interpolation, padding, align_corners, wanted);
}

void expect_equal(const Gradients& made, const Gradients& own) {
    EXPECT_TRUE(at::equal(std::get<0>(made).cpu(), std::get<0>(own))) << std::get<0>(made) << std::get<0>(own);
    EXPECT_TRUE(at::equal(std::get<1>(made).cpu(), std::get<1>(own))) << std::get<1>(made) << std::get<1>(own);
}

TEST(GridSampling, EveryKindHasTheGradientsOfTheCpu) {
    for (const auto interpolation : {GridInterpolation::Linear, GridInterpolation::Nearest}) {
        for (const auto padding : {GridPadding::Zeros, GridPadding::Border, GridPadding::Reflection}) {
            for (const bool align_corners : {false, true}) {
                SCOPED_TRACE(testing::Message() << static_cast<int>(interpolation) << ' ' << static_cast<int>(padding)
                                                << ' ' << align_corners);
                const int64_t more = align_corners ? 1 : 0;  // sizes whose places are eighths too
                const Sample flat = sample({4 + more, 8 + more}, {5, 6});
                expect_equal(made_of(flat, interpolation, padding, align_corners),
                             own_of(flat, interpolation, padding, align_corners));
                const Sample deep = sample({4 + more, 2 + more, 8 + more}, {3, 4, 5});
                expect_equal(made_of(deep, interpolation, padding, align_corners),
                             own_of(deep, interpolation, padding, align_corners));
            }
        }
    }
}

TEST(GridSampling, CardsTakeItInPlaceOfCudnn) {
    const at::Device device = test::test_device();
    if (!device.is_cuda()) GTEST_SKIP() << "no card";
    const Sample flat = sample({5, 9}, {5, 6});
    const Gradients own = own_of(flat, GridInterpolation::Linear, GridPadding::Zeros, true);
    const at::Tensor input = flat.input.to(device).requires_grad_(), grid = flat.grid.to(device).requires_grad_();
    at::cudnn_grid_sampler(input, grid).backward(flat.gradient.to(device));
    expect_equal({input.grad(), grid.grad()}, own);
}

TEST(GridSampling, AnInputOfOneElementIsReflectedOntoIt) {
    const Sample one = sample({1, 1}, {2, 3});
    expect_equal(made_of(one, GridInterpolation::Linear, GridPadding::Reflection, true),
                 own_of(one, GridInterpolation::Linear, GridPadding::Reflection, true));
}

TEST(GridSampling, PlacesThatAreNoNumbersAreOutside) {
    const Sample outside = sample({4, 4}, {2, 2});
    Sample odd = outside;
    odd.grid = outside.grid.clone();
    for (const auto& [element, number] : {std::pair(0, std::nanf("")), std::pair(5, 1e30F)}) {
        odd.grid.view(-1)[element] = number;
        outside.grid.view(-1)[element] = -5;
    }
    expect_equal(made_of(odd, GridInterpolation::Linear, GridPadding::Zeros, false),
                 own_of(outside, GridInterpolation::Linear, GridPadding::Zeros, false));
}

TEST(GridSampling, OnlyWhatIsWantedIsMade) {
    const Sample some = sample({4, 8}, {5, 6});
    const auto own = own_of(some, GridInterpolation::Linear, GridPadding::Zeros, false);
    const auto of_input = made_of(some, GridInterpolation::Linear, GridPadding::Zeros, false, {true, false});
    EXPECT_TRUE(at::equal(std::get<0>(of_input).cpu(), std::get<0>(own)));
    EXPECT_FALSE(std::get<1>(of_input).defined());
    const auto of_grid = made_of(some, GridInterpolation::Linear, GridPadding::Zeros, false, {false, true});
    EXPECT_FALSE(std::get<0>(of_grid).defined());
    EXPECT_TRUE(at::equal(std::get<1>(of_grid).cpu(), std::get<1>(own)));
}

TEST(GridSampling, HalfPrecisionIsSummedInFloat32) {
    const Sample many{at::ones({1, 1, 1, 512}, at::kBFloat16), at::zeros({1, 1, 1, 1}, at::kBFloat16),
                      at::zeros({1, 1, 512, 2}, at::kBFloat16)};
    const auto [of_input, of_grid] = made_of(many, GridInterpolation::Linear, GridPadding::Zeros, false);
    EXPECT_EQ(of_input.scalar_type(), at::kBFloat16);
    EXPECT_EQ(of_grid.scalar_type(), at::kBFloat16);
    EXPECT_EQ(of_input.item<float>(), 512) << "sums of bfloat16 stop at 256";
}

}  // namespace
}  // namespace vpp
