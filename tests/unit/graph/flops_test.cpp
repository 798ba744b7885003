#include "graph/flops.hpp"

#include <ATen/Functions.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>

#include <functional>

#include "graph/meta_kernels.hpp"

namespace vpp {
namespace {

at::Tensor meta(std::vector<int64_t> shape) {
    return at::empty(shape, at::kMeta);
}

double flops_of(const std::function<void()>& run) {
    complete_meta_kernels();
    FlopCounter counter;
    run();
    const double flops = counter.take();
    EXPECT_EQ(counter.take(), 0);
    return flops;
}

TEST(Flops, ProductsCountTwoPerMultiplyAdd) {
    const at::Tensor a = meta({8, 16}), b = meta({16, 32});
    constexpr double kOne = 2.0 * 8 * 32 * 16;
    EXPECT_EQ(flops_of([&] { at::mm(a, b); }), kOne);
    EXPECT_EQ(flops_of([&] { at::addmm(meta({32}), a, b); }), kOne);
    EXPECT_EQ(flops_of([&] { at::linear(a, meta({32, 16}), meta({32})); }), kOne);
    EXPECT_EQ(flops_of([&] { at::linear(meta({2, 4, 16}), meta({32, 16})); }), kOne);
    EXPECT_EQ(flops_of([&] { at::bmm(meta({3, 8, 16}), meta({3, 16, 32})); }), 3 * kOne);
    EXPECT_EQ(flops_of([&] { at::baddbmm(meta({3, 8, 32}), meta({3, 8, 16}), meta({3, 16, 32})); }), 3 * kOne);
    EXPECT_EQ(flops_of([&] { at::matmul(meta({16}), meta({16})); }), 2.0 * 16) << "a dot product";
    EXPECT_EQ(flops_of([&] { at::matmul(a, meta({16})); }), 2.0 * 8 * 16);
}

TEST(Flops, ProductsInsideOfAnOpCount) {
    EXPECT_EQ(flops_of([&] {
                  at::einsum("bti,ij->btj", {meta({4, 16, 64}), meta({64, 256})});
              }),
              2.0 * 4 * 16 * 64 * 256);
    EXPECT_EQ(flops_of([&] { at::tensordot(meta({4, 5, 6}), meta({6, 7}), {2}, {0}); }), 2.0 * 4 * 5 * 6 * 7);
}

TEST(Flops, ConvolutionsCountTheirKernels) {
    const at::Tensor input = meta({2, 4, 10, 10});
    EXPECT_EQ(flops_of([&] { at::conv2d(input, meta({8, 4, 3, 3}), meta({8}), 1, 1); }), 2.0 * 2 * 8 * 100 * 4 * 9);
    EXPECT_EQ(flops_of([&] {
                  at::conv2d(input, meta({8, 2, 3, 3}), {}, 1, 1, 1, /*groups=*/2);
              }),
              2.0 * 2 * 8 * 100 * 2 * 9);
    EXPECT_EQ(flops_of([&] { at::conv_transpose2d(input, meta({4, 8, 3, 3})); }), 2.0 * 2 * 4 * 100 * 8 * 9);
}

TEST(Flops, ARecurrentLayerTakesEachWeightOnceAPosition) {
    const std::vector<at::Tensor> weights{at::ones({256, 64}), at::ones({256, 64}), at::ones({256}), at::ones({256})};
    const auto run = [&](at::Device device) {
        std::vector<at::Tensor> there;
        for (const at::Tensor& weight : weights) there.push_back(weight.to(device));
        const at::Tensor input = at::ones({16, 4, 64}).to(device), state = at::ones({1, 4, 64}).to(device);
        at::lstm(input, {state, state}, there, true, 1, 0, false, false, false);
    };
    constexpr double kFlops = 2.0 * 16 * 4 * 2 * 256 * 64;
    EXPECT_EQ(flops_of([&] { run(at::kCPU); }), kFlops);
    EXPECT_EQ(flops_of([&] { run(at::kMeta); }), kFlops);
}

TEST(Flops, AttentionIsTwoProducts) {
    const at::Tensor q = at::ones({2, 4, 6, 8}), k = at::ones({2, 4, 10, 8});
    constexpr double kFlops = 2 * 2.0 * 2 * 4 * 6 * 10 * 8;
    EXPECT_EQ(flops_of([&] { at::scaled_dot_product_attention(q, k, k); }), kFlops);
    EXPECT_EQ(flops_of([&] { count_attention(q.sizes(), k.sizes()); }), kFlops);
    EXPECT_EQ(flops_of([&] { count_attention({}, {}); }), 0);
}

TEST(Flops, WhatAnInterpreterRunsIsOnTopOfItsStack) {
    const auto product = c10::Dispatcher::singleton().findSchemaOrThrow("aten::mm", "");
    torch::jit::Stack stack{int64_t{7}, meta({5, 6}), meta({2, 3}), meta({3, 4})};
    EXPECT_EQ(flops_of([&] { product.callBoxed(stack); }), 2.0 * 2 * 3 * 4);
    EXPECT_EQ(stack.size(), 3U);
}

TEST(Flops, OthersAndWhatFailsCountNothing) {
    EXPECT_EQ(flops_of([&] { at::relu(meta({8, 16})).view({128}); }), 0);
    EXPECT_EQ(flops_of([&] { EXPECT_ANY_THROW(at::mm(meta({2, 3}), meta({2, 3}))); }), 0);
    EXPECT_EQ(flops_of([&] { at::mm(meta({0, 3}), meta({3, 4})); }), 0);
}

TEST(Flops, CountingEndsWithTheCounter) {
    { const FlopCounter unused; }
    at::mm(meta({2, 3}), meta({3, 4}));
    FlopCounter counter;
    EXPECT_EQ(counter.take(), 0);
}

}  // namespace
}  // namespace vpp
