#include "device/memory_begin.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>

#include "support/far_device.hpp"

namespace vpp::test {
namespace {

TEST(MemoryBegin, isCountedFromWhereMemoryIsAllocated) {
    const at::Tensor rows = at::empty({3, 61}, at::TensorOptions(test_device()));
    EXPECT_EQ(begin_bytes_of(rows[1]) - begin_bytes_of(rows), test_device().is_cpu() ? 244 % 64 : 244);
    EXPECT_EQ(begin_bytes_of(rows), 0);
    EXPECT_EQ(begin_bytes_of(rows.narrow(1, 7, 0)), 0) << "nothing begins";
}

TEST(MemoryBegin, isThatOfNewMemory) {
    const auto options = at::TensorOptions(at::kDouble).device(test_device());
    for (const int64_t begin_bytes : {0, 8, 16, 56}) {
        const at::Tensor tensor = empty_beginning_at(begin_bytes, {3, 5}, {1, 4}, options);
        EXPECT_EQ(begin_bytes_of(tensor), begin_bytes);
        EXPECT_EQ(tensor.sizes(), (at::IntArrayRef{3, 5}));
        EXPECT_EQ(tensor.strides(), (at::IntArrayRef{1, 4}));
        EXPECT_FALSE(tensor.is_view());
        tensor.zero_();  // all of it is there
    }
}

TEST(MemoryBegin, aCopyHasStridesAndBegin) {
    const at::Tensor base = at::arange(4 * 61, at::kFloat).view({4, 61}).to(test_device());
    for (const at::Tensor& tensor :
         {base[1], base.narrow(0, 1, 2), base.narrow(1, 3, 7).t(), base.slice(1, 1, 60, 2)}) {
        const at::Tensor copy = copy_beginning_alike(tensor);
        EXPECT_TRUE(at::equal(copy.cpu(), tensor.cpu()));
        EXPECT_EQ(copy.strides(), tensor.strides());
        EXPECT_EQ(begin_bytes_of(copy), begin_bytes_of(tensor));
        EXPECT_NE(copy.const_data_ptr(), tensor.const_data_ptr());
    }
    EXPECT_EQ(copy_beginning_alike(base.narrow(0, 0, 0)).sizes(), (at::IntArrayRef{0, 61}));
    EXPECT_TRUE(at::equal(copy_beginning_alike(base[0].expand({3, 61})).cpu(), base[0].expand({3, 61}).cpu()));
}

TEST(MemoryBegin, aCopyHasTheProductsOfTheTensor) {
    const at::Tensor memory = at::rand({5000});
    for (int64_t begin = 1; begin < 16; ++begin) {
        const at::Tensor inside = memory.narrow(0, begin, 4000), copy = copy_beginning_alike(inside);
        EXPECT_TRUE(at::equal(at::dot(inside, inside), at::dot(copy, copy))) << begin;
    }
}

}  // namespace
}  // namespace vpp::test
