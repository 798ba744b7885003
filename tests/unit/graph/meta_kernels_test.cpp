// Ops on the meta device against the same ops on the CPU.
#include "graph/meta_kernels.hpp"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace vpp {
namespace {

using Tensors = std::vector<at::Tensor>;
using Places = c10::List<std::optional<at::Tensor>>;

struct Tried {
    const char* name;
    std::function<Tensors()> inputs;  ///< on the CPU
    std::function<Tensors(const Tensors&)> run;
};

at::Tensor ones_with_gradient(at::IntArrayRef shape) {
    return at::ones(shape).set_requires_grad(true);
}

Tensors with_classes() {
    return {ones_with_gradient({4, 3}), at::zeros({4}, at::kLong)};
}

/// Of a convolution's input and weight.
Tried convolution(const char* name, std::vector<int64_t> input, std::vector<int64_t> weight,
                  std::function<at::Tensor(const at::Tensor& x, const at::Tensor& w)> run,
                  at::MemoryFormat format = at::MemoryFormat::Contiguous) {
    return {name,
            [=] {
                return Tensors{at::ones(input).contiguous(format), at::ones(weight).set_requires_grad(true)};
            },
            [=](const Tensors& given) { return Tensors{run(given[0], given[1])}; }};
}

const std::vector<Tried>& cases() {
    const auto matrix = [] { return Tensors{ones_with_gradient({4, 6})}; };
    const auto turned = [] { return Tensors{at::ones({6, 4}).t().set_requires_grad(true)}; };
    const auto image = [] { return Tensors{ones_with_gradient({2, 3, 8, 8})}; };
    static const std::vector<Tried> kCases{
        {"relu", matrix, [](auto& x) { return Tensors{at::relu(x[0])}; }},
        {"relu of a transposed one", turned, [](auto& x) { return Tensors{at::relu(x[0])}; }},
        {"relu in place", matrix,
         [](auto& x) {
             const at::Tensor y = x[0] * 2;
             at::Tensor same = at::relu_(const_cast<at::Tensor&>(y));
             EXPECT_TRUE(same.is_same(y));
             return Tensors{y};
         }},
        {"where", matrix, [](auto& x) { return Tensors{at::where(x[0] > 0, x[0], x[0][0] * 2)}; }},
        {"where into another", matrix,
         [](auto& x) {
             at::Tensor out = at::empty({0}, x[0].options());
             const at::NoGradGuard without_gradient;
             at::where_out(out, x[0] > 0, x[0], x[0][0] * 2);
             return Tensors{out};
         }},
        {"where of two types", matrix,
         [](auto& x) {
             const at::Tensor whole = at::ones({6}, x[0].options().dtype(at::kLong));
             return Tensors{at::where(x[0][0] > 0, x[0].detach().to(at::kBFloat16), whole)};
         }},
        {"where of transposed ones", turned,
         [](auto& x) {
             return Tensors{at::where(x[0] > 0, x[0], x[0] * 2), at::where(x[0] > 0, x[0], 1.0)};
         }},
        {"abs of a transposed one", turned, [](auto& x) { return Tensors{at::abs(x[0])}; }},
        {"logical_and", turned, [](auto& x) { return Tensors{at::logical_and(x[0].detach() > 0, x[0].detach())}; }},
        {"abs into another", matrix,
         [](auto& x) {
             at::Tensor turned_out = at::empty({x[0].size(1), x[0].size(0)}, x[0].options().requires_grad(false)).t();
             return Tensors{at::abs_out(turned_out, x[0].detach())};
         }},
        {"hardtanh", matrix, [](auto& x) { return Tensors{at::hardtanh(x[0])}; }},
        {"prelu", matrix, [](auto& x) { return Tensors{at::prelu(x[0], x[0][0])}; }},
        {"flip", turned, [](auto& x) { return Tensors{at::flip(x[0], {0})}; }},
        {"roll", matrix, [](auto& x) { return Tensors{at::roll(x[0], {1}, {1})}; }},
        {"index_select", matrix,
         [](auto& x) { return Tensors{at::index_select(x[0], 1, at::zeros({3}, x[0].options().dtype(at::kLong)))}; }},
        {"embedding",
         [] {
             return Tensors{ones_with_gradient({7, 6}), at::zeros({2, 5}, at::kLong)};
         },
         [](auto& x) { return Tensors{at::embedding(x[0], x[1])}; }},
        {"floor_divide", matrix, [](auto& x) { return Tensors{at::floor_divide(x[0].detach(), x[0][0].detach())}; }},
        {"var", turned, [](auto& x) { return Tensors{at::var(x[0], {1}, 1, true)}; }},
        {"std_mean", matrix,
         [](auto& x) {
             const auto [deviation, mean] = at::std_mean(x[0], {0}, 0, false);
             return Tensors{deviation, mean};
         }},
        {"max", matrix, [](auto& x) { return Tensors{at::max(x[0])}; }},
        {"nll_loss2d",
         [] {
             return Tensors{ones_with_gradient({2, 3, 4, 4}), at::zeros({2, 4, 4}, at::kLong)};
         },
         [](auto& x) { return Tensors{at::nll_loss2d(x[0], x[1])}; }},
        {"cross_entropy", with_classes, [](auto& x) { return Tensors{at::cross_entropy_loss(x[0], x[1])}; }},
        {"index with a mask's places", matrix,
         [](auto& x) {
             const at::Tensor rows = at::zeros({2}, x[0].options().dtype(at::kLong));
             return Tensors{at::index(x[0], Places({rows, std::nullopt}))};
         }},
        {"batch_norm", image,
         [](auto& x) {
             at::Tensor mean = at::zeros({3}, x[0].options()), var = at::ones({3}, x[0].options());
             return Tensors{at::batch_norm(x[0], {}, {}, mean, var, true, 0.1, 1e-5, true), mean, var};
         }},
        {"adaptive_avg_pool2d", image,
         [](auto& x) {
             return Tensors{at::adaptive_avg_pool2d(x[0], {2, 2})};
         }},
        convolution("conv1d", {2, 4, 9}, {6, 4, 3}, [](auto& x, auto& w) { return at::conv1d(x, w, {}, 2, 1); }),
        convolution("conv2d", {2, 4, 9, 7}, {6, 4, 3, 3}, [](auto& x, auto& w) { return at::conv2d(x, w); }),
        convolution("conv2d of one image", {4, 9, 7}, {6, 4, 3, 3},
                    [](auto& x, auto& w) {
                        return at::conv2d(x, w, {}, {2, 1}, {1, 1}, {1, 2});
                    }),
        convolution("conv2d in groups", {2, 4, 9, 7}, {8, 1, 3, 3},
                    [](auto& x, auto& w) {
                        return at::conv2d(x, w, {}, {1, 1}, {1, 1}, {1, 1}, 4);
                    }),
        convolution(
            "conv2d with the channels last", {2, 4, 9, 7}, {6, 4, 3, 3},
            [](auto& x, auto& w) {
                return at::conv2d(x, w, {}, {1, 1}, "same");
            },
            at::MemoryFormat::ChannelsLast),
        convolution("conv3d", {2, 4, 5, 6, 7}, {3, 4, 2, 2, 2}, [](auto& x, auto& w) { return at::conv3d(x, w); }),
        convolution("conv_transpose2d", {2, 4, 5, 5}, {4, 6, 3, 3},
                    [](auto& x, auto& w) {
                        return at::conv_transpose2d(x, w, {}, {2, 2}, {1, 1}, {1, 1});
                    }),
    };
    return kCases;
}

Tensors to_meta(const Tensors& tensors) {
    Tensors metas;
    for (const at::Tensor& tensor : tensors) {
        metas.push_back(at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta))
                            .set_requires_grad(tensor.requires_grad()));
    }
    return metas;
}

TEST(MetaKernels, GiveWhatTheCpuGives) {
    complete_meta_kernels();
    for (const Tried& tried : cases()) {
        SCOPED_TRACE(tried.name);
        const Tensors inputs = tried.inputs();
        const Tensors cpu = tried.run(inputs), meta = tried.run(to_meta(inputs));
        ASSERT_EQ(meta.size(), cpu.size());
        for (size_t i = 0; i < cpu.size(); ++i) {
            EXPECT_TRUE(meta[i].is_meta());
            EXPECT_EQ(meta[i].sizes(), cpu[i].sizes());
            EXPECT_EQ(meta[i].strides(), cpu[i].strides());
            EXPECT_EQ(meta[i].scalar_type(), cpu[i].scalar_type());
            EXPECT_EQ(meta[i].requires_grad(), cpu[i].requires_grad());
            EXPECT_EQ(meta[i].is_leaf(), cpu[i].is_leaf());
        }
    }
}

// Zeros say nothing of them: whoever follows a model has to compute it.
TEST(MetaKernels, ShapesThatDependOnNumbersHaveNone) {
    complete_meta_kernels();
    const at::Tensor x = at::ones({4}, at::kMeta), n = at::ones({4}, at::TensorOptions(at::kMeta).dtype(at::kLong));
    const std::vector<std::pair<const char*, std::function<void()>>> ops{
        {"nonzero", [&] { at::nonzero(x); }},
        {"masked_select", [&] { at::masked_select(x, x > 0); }},
        {"item", [&] { x[0].item(); }},
        {"equal", [&] { at::equal(x, x); }},
        {"unique", [&] { at::_unique2(x); }},
        {"bincount", [&] { at::bincount(n); }},
        {"repeat_interleave", [&] { at::repeat_interleave(n); }},
        {"one_hot", [&] { at::one_hot(n); }},
        {"index with a mask", [&] { at::index(x, Places({x > 0})); }},
    };
    for (const auto& [name, op] : ops) EXPECT_THROW(op(), std::exception) << name;
}

TEST(MetaKernels, WhatNobodyReadsTakesNoMemory) {
    complete_meta_kernels();
    const auto bytes_per_row = int64_t{1} << 20;
    const at::Tensor weight = at::empty({int64_t{1} << 20, bytes_per_row / 4}, at::kMeta);  // a tebibyte
    const at::Tensor rows = at::zeros({3}, at::TensorOptions(at::kMeta).dtype(at::kLong));
    EXPECT_EQ(at::embedding(weight, rows).sizes(), (std::vector<int64_t>{3, bytes_per_row / 4}));
    EXPECT_EQ(at::where(weight > 0, at::relu(weight), weight).sizes(), weight.sizes());
}

TEST(MetaKernels, WhatDoesNotFitIsSaidAsOnTheCpu) {
    complete_meta_kernels();
    EXPECT_THROW(at::conv2d(at::ones({2, 4, 9, 7}, at::kMeta), at::ones({6, 3, 3, 3}, at::kMeta)), std::exception);
    EXPECT_THROW(at::conv2d(at::ones({2, 4, 2, 2}, at::kMeta), at::ones({6, 4, 3, 3}, at::kMeta)), std::exception);
    EXPECT_THROW(at::where(at::ones({3}, at::kMeta) > 0, at::ones({2}, at::kMeta), at::ones({3}, at::kMeta)),
                 std::exception);
}

}  // namespace
}  // namespace vpp
