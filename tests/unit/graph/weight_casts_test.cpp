#include "graph/weight_casts.hpp"

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include "graph/autocast.hpp"
#include "unit/graph/models.hpp"

namespace vpp {
namespace {

using namespace test;

class SharedCasts : public ::testing::Test {
  protected:
    SharedCasts() {
        casts_.add(weight_, at::kBFloat16);
        casts_.refresh();
    }

    at::Tensor use() const { return casts_.use(weight_, at::kBFloat16); }

    const at::Tensor weight_ = values({3, 4}).t().requires_grad_();
    WeightCasts casts_;
};

TEST_F(SharedCasts, EveryUseHasTheBitsOfACastAndTheOneMemory) {
    const at::Tensor first = use(), second = use();
    const at::Tensor expected = weight_.to(at::kBFloat16);
    EXPECT_EQ(bits_of(first), bits_of(expected));
    EXPECT_EQ(first.strides(), expected.strides());
    EXPECT_EQ(first.const_data_ptr(), second.const_data_ptr());
    EXPECT_NE(first.grad_fn(), second.grad_fn()) << "to autograd each is a cast of its own";
}

TEST_F(SharedCasts, GradientsComeInTheWeightsDtypeAndAreAddedThere) {
    const at::Tensor other = values({3, 4}).t().requires_grad_();
    const at::Tensor x = values({2, 4}, 1).to(at::kBFloat16), y = values({2, 4}, 5).to(at::kBFloat16);
    const auto train = [&](const at::Tensor& one, const at::Tensor& two) {
        (at::mm(x, one).sum() + at::mm(y, two).sum()).backward();
    };
    train(use(), use());
    train(other.to(at::kBFloat16), other.to(at::kBFloat16));
    EXPECT_EQ(weight_.grad().scalar_type(), at::kFloat);
    EXPECT_EQ(bits_of(weight_.grad()), bits_of(other.grad()));
}

TEST_F(SharedCasts, WithoutGradientsItIsATensorOfItsOwnWithoutAHistory) {
    const at::NoGradGuard evaluation;
    EXPECT_FALSE(use().requires_grad());
    EXPECT_EQ(bits_of(use()), bits_of(weight_.to(at::kBFloat16)));
}

TEST_F(SharedCasts, ACopyOfATiedWeightIsFoundByItsMemoryAndLeadsToItsOwnNode) {
    const at::Tensor copy = weight_.detach().requires_grad_();
    at::mm(values({2, 4}).to(at::kBFloat16), casts_.use(copy, at::kBFloat16)).sum().backward();
    EXPECT_TRUE(copy.grad().defined());
    EXPECT_FALSE(weight_.grad().defined());
}

TEST_F(SharedCasts, WhatWasWrittenSinceIsNotUsed) {
    weight_.detach().add_(1);
    EXPECT_TRUE(use().is_same(weight_)) << "autocast casts it";
    const void* const memory = [&] {
        casts_.refresh();
        return use().const_data_ptr();
    }();
    EXPECT_EQ(bits_of(use()), bits_of(weight_.to(at::kBFloat16)));
    casts_.refresh();
    EXPECT_EQ(use().const_data_ptr(), memory) << "recordings read it there";
}

TEST_F(SharedCasts, WhatHasNoCopyStaysAsItIs) {
    const at::Tensor other = values({4, 3}).requires_grad_(), integers = at::ones({3}, at::kLong);
    EXPECT_TRUE(casts_.use(other, at::kBFloat16).is_same(other));
    EXPECT_TRUE(casts_.use(weight_, at::kHalf).is_same(weight_));
    const at::Tensor row = weight_[0];
    EXPECT_TRUE(casts_.use(row, at::kBFloat16).is_same(row));
    WeightCasts none;
    none.add(integers, at::kBFloat16);
    none.add(at::empty({0}), at::kBFloat16);
    none.add(weight_, at::kBFloat16);
    EXPECT_TRUE(none.use(weight_, at::kBFloat16).is_same(weight_)) << "not before a refresh";
    none.refresh();
    EXPECT_TRUE(none.use(integers, at::kBFloat16).is_same(integers));
}

TEST_F(SharedCasts, ABackwardBehindTheNextStepIsRefused) {
    const at::Tensor x = values({2, 4}).to(at::kBFloat16).requires_grad_();
    const at::Tensor loss = at::mm(x, use()).sum();
    casts_.refresh();
    EXPECT_THROW(loss.backward(), c10::Error) << "it would read other numbers";
}

}  // namespace
}  // namespace vpp
