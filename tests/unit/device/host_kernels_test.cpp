#include "device/host_kernels.hpp"

#include <ATen/Functions.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "device/cards.hpp"
#include "device/device.hpp"
#include "support/far_device.hpp"

namespace vpp {
namespace {

using torch::jit::Stack;

at::Device beside() {
    const at::Device device = test::device_beside_cpu();
    start_device(device);
    return device;
}

Stack on_host(const char* name, const char* overload, Stack stack) {
    run_on_host(c10::Dispatcher::singleton().findSchemaOrThrow(name, overload), stack);
    return stack;
}

/// Numbers that no order of sums gets right twice.
at::Tensor fractions(at::IntArrayRef sizes) {
    const at::Tensor numbers = at::arange(c10::multiply_integers(sizes), at::kFloat);
    return numbers.mul(7).remainder(11).add(1).reciprocal().view(sizes);
}

void expect_bits(const at::Tensor& made, const at::Tensor& own) {
    EXPECT_EQ(made.device(), beside());
    EXPECT_TRUE(at::equal(made.cpu(), own)) << made.cpu() << own;
}

TEST(HostKernels, ResultsComeToTheDevice) {
    const at::Tensor input = fractions({40});
    const Stack results = on_host("aten::histc", "", {input.to(beside()), 5, 0, 1});
    ASSERT_EQ(results.size(), 1U);
    expect_bits(results[0].toTensor(), at::histc(input, 5, 0, 1));
}

TEST(HostKernels, ResultsThatNobodyAskedForStayUndefined) {
    const at::Tensor input = fractions({1, 2, 3, 3}), grid = fractions({1, 4, 4, 2}),
                     gradient = fractions({1, 2, 4, 4});
    const c10::List<bool> mask({false, true});
    const Stack results = on_host("aten::grid_sampler_2d_backward", "",
                                  {gradient.to(beside()), input.to(beside()), grid.to(beside()), 0, 0, true, mask});
    ASSERT_EQ(results.size(), 2U);
    EXPECT_FALSE(results[0].toTensor().defined());
    const auto own = at::grid_sampler_2d_backward(gradient, input, grid, 0, 0, true, {false, true});
    expect_bits(results[1].toTensor(), std::get<1>(own));
}

TEST(HostKernels, WhatAnOpWritesIsWrittenThere) {
    const at::Tensor own = fractions({3, 2});
    const at::Tensor given = own.to(beside());
    const at::Tensor index = at::tensor({0, 2, 0}), source = fractions({3, 2}).add(1);
    const Stack results =
        on_host("aten::index_reduce_", "", {given, 0, index.to(beside()), source.to(beside()), "prod", true});
    own.index_reduce_(0, index, source, "prod");
    EXPECT_TRUE(results[0].toTensor().is_same(given));
    expect_bits(given, own);
}

TEST(HostKernels, WhatAnOpSizesIsSizedThere) {
    const at::Tensor input = fractions({4, 5});
    const at::Tensor values = at::empty({0}, beside()), indices = at::empty({0}, values.options().dtype(at::kLong));
    on_host("aten::median", "dim_values", {input.to(beside()), 1, false, values, indices});
    const auto [own_values, own_indices] = at::median(input, 1);
    expect_bits(values, own_values);
    expect_bits(indices, own_indices);
}

/// An op on tensors of a card has the bits of the CPU's kernel.
void expect_bits_of_cpu(const char* name, const std::vector<at::Tensor>& inputs,
                        const std::function<at::Tensor(const std::vector<at::Tensor>&)>& op) {
    SCOPED_TRACE(name);
    std::vector<at::Tensor> far;
    for (const at::Tensor& input : inputs) far.push_back(input.to(beside()));
    expect_bits(op(far), op(inputs));
}

using Inputs = std::vector<at::Tensor>;

TEST(HostKernels, TakeTheFormsOfOpsThatCardsHaveNoExactKernelFor) {
    if (!test::test_device().is_cuda()) GTEST_SKIP() << "no card";
    const at::Tensor line = fractions({50}), table = fractions({4, 6}), index = at::arange(50).remainder(7);
    expect_bits_of_cpu("cumprod", {line.add(0.5)}, [](const Inputs& in) { return in[0].cumprod(0); });
    expect_bits_of_cpu("logcumsumexp", {line}, [](const Inputs& in) { return in[0].logcumsumexp(0); });
    expect_bits_of_cpu("histc", {line}, [](const Inputs& in) { return in[0].histc(5, 0, 1); });
    expect_bits_of_cpu("bincount", {index, line}, [](const Inputs& in) { return in[0].bincount(in[1]); });
    expect_bits_of_cpu("median", {table}, [](const Inputs& in) { return std::get<1>(in[0].median(1)); });
    expect_bits_of_cpu("nanmedian", {table}, [](const Inputs& in) { return std::get<1>(in[0].nanmedian(1)); });
    expect_bits_of_cpu("scatter_reduce", {line.slice(0, 0, 7), index, line},
                       [](const Inputs& in) { return in[0].scatter_reduce(0, in[1], in[2], "prod"); });
    expect_bits_of_cpu("scatter", {line.slice(0, 0, 7), index, line},
                       [](const Inputs& in) { return in[0].scatter(0, in[1], in[2], "multiply"); });
    expect_bits_of_cpu("index_reduce", {line.slice(0, 0, 7), index, line},
                       [](const Inputs& in) { return in[0].index_reduce(0, in[1], in[2], "mean"); });
    expect_bits_of_cpu("ctc_loss", {fractions({5, 2, 4}).log_softmax(2)}, [](const Inputs& in) {
        const at::Tensor scores = in[0].detach().set_requires_grad(true);
        const at::Tensor targets = at::tensor({1, 2, 2, 3}, at::kLong).view({2, 2}).to(scores.device());
        at::ctc_loss(scores, targets, at::IntArrayRef({5, 4}), at::IntArrayRef({2, 2})).backward();
        return scores.grad();
    });
    expect_bits_of_cpu("embedding_bag", {table}, [](const Inputs& in) {
        const at::Tensor weights = in[0].detach().set_requires_grad(true);
        const at::Tensor indices = at::tensor({0, 1, 3, 1}, at::kLong).to(weights.device());
        const at::Tensor offsets = at::tensor({0, 2}, at::kLong).to(weights.device());
        std::get<0>(at::embedding_bag(weights, indices, offsets, false, 2)).sum().backward();
        return weights.grad();
    });
    expect_bits_of_cpu("cubic", {fractions({1, 2, 5, 5}), fractions({1, 3, 3, 2})}, [](const Inputs& in) {
        const at::Tensor image = in[0].detach().set_requires_grad(true);
        at::grid_sampler_2d(image, in[1], 2, 0, false).sum().backward();
        return image.grad();
    });
    expect_bits_of_cpu("antialias", {fractions({1, 1, 8, 8})}, [](const Inputs& in) {
        const at::Tensor image = in[0].detach().set_requires_grad(true);
        at::_upsample_bilinear2d_aa(image, {3, 3}, false).sum().backward();
        return image.grad();
    });
}

TEST(HostKernels, LeaveTheOtherFormsToTheCard) {
    if (!test::test_device().is_cuda()) GTEST_SKIP() << "no card";
    const at::Tensor lines = fractions({2, 50}).add(0.5), own = lines.cumprod(1);
    const at::Tensor made = lines.to(beside()).cumprod(1).cpu();
    EXPECT_TRUE(at::allclose(made, own));
    const bool rounds_otherwise = cuda_cards().at(0).name == "soft card";
    EXPECT_FALSE(rounds_otherwise && at::equal(made, own)) << "it was not the card";
}

}  // namespace
}  // namespace vpp
