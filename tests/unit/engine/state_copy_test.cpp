#include "engine/state_copy.hpp"

#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include <cstring>

namespace vpp::test {
namespace {

std::vector<StateTensor> state() {
    return {{"a", at::arange(6, at::kFloat).view({2, 3}).t()}, {"b", at::arange(3, at::kLong)}};
}

std::vector<float> floats(const TensorBytes& tensor) {
    std::vector<float> values(tensor.bytes.size() / sizeof(float));
    std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    return values;
}

TEST(StateCopy, bytesAreRowMajorWhateverTheStridesAre) {
    const auto tensors = state();
    for (const bool is_borrowed : {false, true}) {
        StateCopy copy;
        is_borrowed ? copy.borrow(tensors) : copy.take(tensors);
        ASSERT_EQ(copy.tensors().size(), 2u);
        const TensorBytes& a = copy.tensors()[0];
        EXPECT_EQ(a.name, "a");
        EXPECT_EQ(a.dtype, DType::F32);
        EXPECT_EQ(a.shape, (std::vector<int64_t>{3, 2}));
        EXPECT_EQ(floats(a), (std::vector<float>{0, 3, 1, 4, 2, 5}));
        EXPECT_EQ(copy.tensors()[1].dtype, DType::I64);
        EXPECT_EQ(copy.size_bytes(), 6 * sizeof(float) + 3 * sizeof(int64_t));
    }
}

TEST(StateCopy, aCopyStaysWhatABorrowedTensorDoesNot) {
    const std::vector<StateTensor> tensors{{"a", at::arange(4, at::kFloat)}};
    StateCopy copy, borrowed;
    copy.take(tensors);
    borrowed.borrow(tensors);
    tensors[0].tensor.zero_();
    EXPECT_EQ(floats(copy.tensors()[0]), (std::vector<float>{0, 1, 2, 3}));
    EXPECT_EQ(floats(borrowed.tensors()[0]), (std::vector<float>{0, 0, 0, 0})) << "the control";
}

TEST(StateCopy, memoryIsUsedAgain) {
    const auto tensors = state();
    StateCopy copy;
    copy.take(tensors);
    const auto* first = copy.tensors()[0].bytes.data();
    copy.take(tensors);
    EXPECT_EQ(copy.tensors()[0].bytes.data(), first);
    EXPECT_EQ(copy.tensors().size(), 2u);
}

}  // namespace
}  // namespace vpp::test
