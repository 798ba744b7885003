#include "device/repeated_elements.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "support/far_device.hpp"

namespace vpp::test {
namespace {

at::Tensor expanded() {
    return at::arange(6, at::kFloat).view({1, 3, 2}).expand({4, 3, 2});
}

TEST(RepeatedElements, AreThereOnce) {
    EXPECT_EQ(without_repeats(expanded()).sizes(), (at::IntArrayRef{1, 3, 2}));
    EXPECT_EQ(without_repeats(at::ones({}).expand({5})).sizes(), at::IntArrayRef{1});
    EXPECT_EQ(without_repeats(at::ones({4, 3})).sizes(), (at::IntArrayRef{4, 3}));
}

TEST(RepeatedElements, AreRepeatedInACopy) {
    const at::Tensor copy = copy_with_repeats(expanded(), test_device());
    EXPECT_EQ(copy.strides(), (at::IntArrayRef{0, 2, 1}));
    EXPECT_TRUE(copy.cpu().equal(expanded()));
    EXPECT_FALSE(copy.is_view());
    const at::Tensor columns = at::ones({2, 3}).t();
    EXPECT_EQ(copy_with_repeats(columns, at::kCPU).strides(), columns.strides());
    EXPECT_FALSE(copy_with_repeats(columns, at::kCPU).is_alias_of(columns));
}

TEST(RepeatedElements, TakeValuesThatRepeatToo) {
    const at::Tensor weight = copy_with_repeats(expanded(), at::kCPU);
    const at::Tensor values = at::arange(10, 16, at::kFloat).view({1, 3, 2}).expand({4, 3, 2}).contiguous();
    take_values(weight, values, "table");
    EXPECT_TRUE(weight.equal(values));
    const at::Tensor others = at::arange(24, at::kFloat).view({4, 3, 2});
    try {
        take_values(weight, others, "table");
        FAIL();
    } catch (const Error& error) {
        EXPECT_THAT(error.what(), ::testing::HasSubstr("the model file repeats elements of 'table', as expand does"));
    }
    EXPECT_TRUE(weight.equal(values)) << "nothing was written";
    const at::Tensor plain = at::ones({4, 3, 2});
    take_values(plain, others, "plain");
    EXPECT_TRUE(plain.equal(others));
}

}  // namespace
}  // namespace vpp::test
