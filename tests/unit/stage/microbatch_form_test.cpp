#include "stage/microbatch_form.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

namespace vpp {
namespace {

MicrobatchForm form_of_inputs(const at::Tensor& tensor, const c10::IValue& value = 1) {
    PassInputs inputs;
    inputs.tensors[3] = tensor;
    inputs.values[5] = value;
    MicrobatchForm form;
    form.note_inputs(inputs);
    return form;
}

bool are_alike(const at::Tensor& one, const at::Tensor& other) {
    return form_of_inputs(one).has_inputs_of(form_of_inputs(other));
}

TEST(MicrobatchForm, NumbersAreNoPartOfIt) {
    EXPECT_TRUE(are_alike(at::zeros({4, 2}), at::ones({4, 2})));
    EXPECT_FALSE(are_alike(at::zeros({4, 2}), at::zeros({4, 3})));
    EXPECT_FALSE(are_alike(at::zeros({4, 2}), at::zeros({2, 4}).t())) << "other strides";
    EXPECT_FALSE(are_alike(at::zeros({4, 2}), at::zeros({4, 2}, at::kDouble)));
    EXPECT_FALSE(are_alike(at::zeros({8}).slice(0, 0, 4), at::zeros({8}).slice(0, 1, 5))) << "begins elsewhere";
}

TEST(MicrobatchForm, SizesThatATraceHasAsTensorsArePartOfIt) {
    EXPECT_TRUE(are_alike(at::scalar_tensor(3, at::kLong), at::scalar_tensor(3, at::kLong)));
    EXPECT_FALSE(are_alike(at::scalar_tensor(3, at::kLong), at::scalar_tensor(4, at::kLong)));
    EXPECT_TRUE(are_alike(at::scalar_tensor(3.0), at::scalar_tensor(4.0))) << "which no recording is made of";
}

TEST(MicrobatchForm, PlainValuesAreAPartOfIt) {
    const at::Tensor tensor = at::zeros({2});
    const auto alike = [&](const c10::IValue& one, const c10::IValue& other) {
        return form_of_inputs(tensor, one).has_inputs_of(form_of_inputs(tensor, other));
    };
    EXPECT_TRUE(alike(7, 7));
    EXPECT_FALSE(alike(7, 8));
    EXPECT_FALSE(alike(7, 7.0));
    EXPECT_TRUE(alike(at::zeros({2}), at::zeros({3}))) << "tensors come by themselves";
    using Ints = std::vector<int64_t>;
    EXPECT_TRUE(alike(Ints{1, 2}, Ints{1, 2}));
    EXPECT_FALSE(alike(Ints{1, 2}, Ints{1, 3}));
    EXPECT_FALSE(alike(Ints{1, 2}, Ints{1}));
    EXPECT_FALSE(alike(0.0, -0.0)) << "whose quotients differ";
    EXPECT_TRUE(alike(std::nan(""), std::nan("")));
    using Complex = c10::complex<double>;
    EXPECT_TRUE(alike(Complex(1, 2), Complex(1, 2)));
    EXPECT_FALSE(alike(Complex(1, 2), Complex(1, 3)));
    const auto dict = [](const std::string& key, int64_t number) {
        c10::Dict<std::string, int64_t> made;
        made.insert(key, number);
        return made;
    };
    EXPECT_TRUE(alike(dict("a", 1), dict("a", 1)));
    EXPECT_FALSE(alike(dict("a", 1), dict("a", 2)));
    EXPECT_FALSE(alike(dict("a", 1), dict("b", 1)));
}

TEST(MicrobatchForm, WhatIsRecomputedOrSplitIsAnother) {
    const MicrobatchForm form = form_of_inputs(at::zeros({2}));
    MicrobatchForm other = form;
    EXPECT_EQ(form, other);
    other.is_split = true;
    EXPECT_TRUE(other.has_inputs_of(form));
    EXPECT_FALSE(other == form);
    other.is_recomputed = true;
    EXPECT_FALSE(other.has_inputs_of(form));
}

TEST(MicrobatchForm, WhichGradientsComeIsAPartOfIt) {
    MicrobatchForm with = form_of_inputs(at::zeros({2})), without = with;
    with.arrived = gradient_forms_of({{3, at::zeros({2})}});
    without.arrived = gradient_forms_of({{3, at::Tensor()}});
    EXPECT_FALSE(with == without);
    EXPECT_TRUE(with.has_inputs_of(without));
}

TEST(MicrobatchForm, OfTheHostOrSparseIsNotPlain) {
    EXPECT_FALSE(form_of_inputs(at::zeros({2})).inputs.at(3).is_plain);
    EXPECT_FALSE(form_of_inputs(at::ones({2, 2}).to_sparse()).inputs.at(3).is_plain);
}

}  // namespace
}  // namespace vpp
