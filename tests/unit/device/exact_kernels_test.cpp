// The backward passes that stand in for LibTorch's inexact ones, over numbers that every order of sums gets right, so
// that they have the bits of the CPU's own.
#include "device/exact_kernels.hpp"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <functional>

#include "device/device.hpp"
#include "support/far_device.hpp"

namespace vpp {
namespace {

using resizing::Padding;
using Sizes = std::vector<int64_t>;

/// Small whole numbers.
at::Tensor whole_numbers(const Sizes& sizes) {
    const int64_t count = c10::multiply_integers(sizes);
    return at::arange(count).mul(7).remainder(11).sub(5).to(at::kFloat).view(sizes);
}

/// The gradient that the CPU's own backward gives the input of `op`.
at::Tensor expected(const Sizes& input, const at::Tensor& gradient, const std::function<at::Tensor(at::Tensor)>& op) {
    const at::Tensor leaf = at::zeros(input).set_requires_grad(true);
    op(leaf).backward(gradient);
    return leaf.grad();
}

void expect_same(const at::Tensor& on_device, const at::Tensor& expected) {
    const at::Tensor made = on_device.cpu();
    EXPECT_EQ(made.sizes(), expected.sizes());
    EXPECT_TRUE(at::equal(made, expected)) << made << expected;
}

/// On the device that is tested, as what the kernels take.
at::Tensor here(const at::Tensor& tensor) {
    start_device(test::test_device());
    return tensor.to(test::test_device());
}

/// What an op gives on the CPU, where it may refuse while exact kernels are asked for: here() asks for them again.
at::Tensor of_cpu(const std::function<at::Tensor()>& op) {
    at::globalContext().setDeterministicAlgorithms(false, false);
    return op();
}

at::Tensor number() {
    return here(at::zeros({}));
}

TEST(ExactKernels, AdaptiveAverages) {
    const at::Tensor gradient = whole_numbers({2, 3, 4, 2});
    const at::Tensor own = expected({2, 3, 6, 8}, gradient, [](const at::Tensor& input) {
        return at::adaptive_avg_pool2d(input, {4, 2});
    });
    const at::Tensor made = resized_backward(
        here(gradient), {resizing::adaptive_average(6, 4, number()), resizing::adaptive_average(8, 2, number())});
    expect_same(made, own);
    const at::Tensor turned = resized_backward(here(gradient), {resizing::adaptive_average(6, 4, number()),
                                                                resizing::adaptive_average(8, 2, number()).flip(0)});
    EXPECT_FALSE(at::equal(turned.cpu(), own)) << "the control";
}

TEST(ExactKernels, LinearInterpolation) {
    const at::Tensor gradient = whole_numbers({2, 3, 8, 5});
    expect_same(resized_backward(here(gradient), {resizing::linear(4, 8, false, std::nullopt, number()),
                                                  resizing::linear(10, 5, false, std::nullopt, number())}),
                expected({2, 3, 4, 10}, gradient, [](const at::Tensor& input) {
                    return at::upsample_bilinear2d(input, {8, 5}, false);
                }));
    expect_same(resized_backward(here(gradient), {resizing::linear(15, 8, true, std::nullopt, number()),
                                                  resizing::linear(3, 5, true, std::nullopt, number())}),
                expected({2, 3, 15, 3}, gradient, [](const at::Tensor& input) {
                    return at::upsample_bilinear2d(input, {8, 5}, true);
                }));
    // A scale that is not the ratio of the sizes: 9 is 4.5 * 2, rounded down.
    const at::Tensor wide = whole_numbers({1, 2, 9});
    const auto scaled = [](const at::Tensor& input) {
        return at::upsample_linear1d(input, at::IntArrayRef({9}), false, 2.0);
    };
    const at::Tensor own = expected({1, 2, 5}, wide, scaled);
    expect_same(resized_backward(here(wide), {resizing::linear(5, 9, false, 2.0, number())}), own);
    const at::Tensor unscaled = resized_backward(here(wide), {resizing::linear(5, 9, false, std::nullopt, number())});
    EXPECT_FALSE(at::equal(unscaled.cpu(), own)) << "the control";
}

TEST(ExactKernels, CubicInterpolation) {
    const at::Tensor gradient = whole_numbers({1, 2, 8, 8});
    for (const int64_t size : {4, 16}) {
        const at::Tensor matrix = resizing::cubic(size, 8, false, std::nullopt, number());
        expect_same(resized_backward(here(gradient), {matrix, matrix}),
                    expected({1, 2, size, size}, gradient, [](const at::Tensor& input) {
                        return at::upsample_bicubic2d(input, {8, 8}, false);
                    }));
    }
}

TEST(ExactKernels, Padding) {
    const at::Tensor gradient = whole_numbers({2, 3, 7, 9});
    expect_same(resized_backward(here(gradient), {resizing::padding(4, 2, 1, Padding::Replicate, number()),
                                                  resizing::padding(10, -2, 1, Padding::Replicate, number())}),
                expected({2, 3, 4, 10}, gradient, [](const at::Tensor& input) {
                    return at::replication_pad2d(input, {-2, 1, 2, 1});
                }));
    expect_same(resized_backward(here(gradient), {resizing::padding(4, 2, 1, Padding::Reflect, number()),
                                                  resizing::padding(4, 2, 3, Padding::Reflect, number())}),
                expected({2, 3, 4, 4}, gradient, [](const at::Tensor& input) {
                    return at::reflection_pad2d(input, {2, 3, 2, 1});
                }));
}

TEST(ExactKernels, AveragesOfWindows) {
    // Windows of 1, 2 and 4 elements along each axis, whose shares are exact.
    const at::Tensor gradient = whole_numbers({1, 2, 3, 3, 2});
    for (const bool counts_padding : {false, true}) {
        for (const auto divisor : {std::optional<int64_t>(), std::optional<int64_t>(4)}) {
            const auto pool = [&](const at::Tensor& input) {
                return at::avg_pool3d(input, {2, 4, 2}, {2, 2, 4}, {1, 2, 0}, true, counts_padding, divisor);
            };
            const auto matrix = [&](int64_t in, int64_t out, int64_t size, int64_t step, int64_t padding) {
                const resizing::Window window{size, step, padding, counts_padding, !divisor};
                return resizing::average(in, out, window, number().to(at::kDouble));
            };
            const at::Tensor made = resized_backward(
                here(gradient.to(at::kDouble)), {matrix(4, 3, 2, 2, 1), matrix(4, 3, 4, 2, 2), matrix(5, 2, 2, 4, 0)});
            expect_same((divisor ? made.div(*divisor) : made).to(at::kFloat),
                        expected({1, 2, 4, 4, 5}, gradient, pool));
        }
    }
}

TEST(ExactKernels, Maxima) {
    const at::Tensor input = whole_numbers({2, 3, 5, 4}).set_requires_grad(true);
    const auto [largest, indices] = at::adaptive_max_pool2d(input, {3, 3});
    const at::Tensor gradient = whole_numbers({2, 3, 3, 3});
    largest.backward(gradient);
    expect_same(maximum_backward(here(gradient), here(input.detach()), here(indices), 2), input.grad());

    const at::Tensor volume = whole_numbers({2, 4, 5, 6}).set_requires_grad(true);
    const auto [top, places] = at::max_pool3d_with_indices(volume, {2, 3, 3}, {1, 1, 2});
    top.backward(at::ones_like(top));
    expect_same(maximum_backward(here(at::ones_like(top)), here(volume.detach()), here(places), 3), volume.grad());
}

TEST(ExactKernels, UnpooledMaxima) {
    const at::Tensor image = whole_numbers({2, 3, 6, 4});
    const auto [largest, indices] = at::max_pool2d_with_indices(image, {2, 2});
    const at::Tensor flat = of_cpu([&] { return at::max_unpool2d(largest, indices, {6, 4}); });
    expect_same(unpooled_maximum(here(largest), here(indices), {6, 4}), flat);
    const at::Tensor volume = whole_numbers({3, 4, 6, 2});
    const auto [top, places] = at::max_pool3d_with_indices(volume, {2, 2, 2});
    const at::Tensor deep = of_cpu([&] { return at::max_unpool3d(top, places, {4, 6, 2}, {2, 2, 2}, {0, 0, 0}); });
    expect_same(unpooled_maximum(here(top), here(places), {4, 6, 2}), deep);
}

TEST(ExactKernels, Puts) {
    const at::Tensor index = at::tensor({5, 0, -1, 5}, at::kLong).view({2, 2}), source = whole_numbers({4});
    for (const bool accumulate : {false, true}) {
        for (const bool turned : {false, true}) {
            at::Tensor own = whole_numbers({3, 4}), made = here(own.clone());
            if (turned) own = own.t(), made = made.t();
            of_cpu([&] { return own.put_(index, source, accumulate); });
            EXPECT_TRUE(put(made, here(index), here(source), accumulate).is_same(made));
            expect_same(made, own);
        }
    }
    at::Tensor self = here(whole_numbers({4}));
    EXPECT_THROW(put(self, here(index.to(at::kInt)), here(source), false), c10::Error);
    EXPECT_THROW(put(self, here(index), here(source.slice(0, 0, 1)), false), c10::Error) << "one for all";
}

TEST(ExactKernels, HalfPrecisionIsSummedInFloat32) {
    const at::Tensor gradient = at::ones({1, 1, 512}, at::kBFloat16);
    const at::Tensor made =
        resized_backward(here(gradient), {resizing::padding(1, 511, 0, Padding::Replicate, number())});
    EXPECT_EQ(made.scalar_type(), at::kBFloat16);
    EXPECT_EQ(made.item<float>(), 512) << "sums of bfloat16 stop at 256";
}

TEST(ExactKernels, LossesOfImages) {
    const at::Tensor input = whole_numbers({2, 3, 4, 4});
    const at::Tensor target = at::arange(32).remainder(4).view({2, 4, 4});  // 3 is ignored
    for (const auto& weight : {std::optional<at::Tensor>(), std::optional(at::arange(3).to(at::kFloat).add(1))}) {
        for (const int64_t reduction : {at::Reduction::None, at::Reduction::Mean, at::Reduction::Sum}) {
            const auto made = nll_loss_of_images(here(input), here(target),
                                                 weight ? std::optional(here(*weight)) : weight, reduction, 3);
            const auto own = at::nll_loss2d_forward(input, target, weight, reduction, 3);
            expect_same(std::get<0>(made), std::get<0>(own));
            expect_same(std::get<1>(made), std::get<1>(own));
        }
    }
}

}  // namespace
}  // namespace vpp
