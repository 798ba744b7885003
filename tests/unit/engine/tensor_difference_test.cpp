#include "engine/tensor_difference.hpp"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <bit>
#include <limits>

#include "unit/engine/support.hpp"

namespace vpp::test {
namespace {

uint64_t ulps(float a, float b) {
    return ulps_between(std::bit_cast<uint32_t>(a), std::bit_cast<uint32_t>(b), at::kFloat);
}

TEST(UlpsBetween, CountsTheValuesInBetween) {
    const float tiny = std::numeric_limits<float>::denorm_min();
    EXPECT_EQ(ulps(1, 1), 0U);
    EXPECT_EQ(ulps(1, std::nextafter(1.0F, 2.0F)), 1U);
    EXPECT_EQ(ulps(1, 2), 1U << 23);
    EXPECT_EQ(ulps(-tiny, tiny), 2U) << "over zero";
    EXPECT_EQ(ulps(0, -0.0F), 0U);
    EXPECT_EQ(ulps(-1, std::nextafter(-1.0F, 0.0F)), 1U);
    const double wide = std::numeric_limits<double>::max();
    EXPECT_EQ(ulps_between(std::bit_cast<uint64_t>(wide), std::bit_cast<uint64_t>(-wide), at::kDouble),
              2 * std::bit_cast<uint64_t>(wide));
}

TEST(UlpsBetween, KnowsHalvesAndIntegers) {
    EXPECT_EQ(ulps_between(0x3c00, 0x3c01, at::kHalf), 1U);
    EXPECT_EQ(ulps_between(0x8001, 0x0001, at::kBFloat16), 2U);
    EXPECT_EQ(ulps_between(0xff, 0x01, at::kChar), 2U) << "-1 and 1";
    EXPECT_EQ(ulps_between(0xff, 0x01, at::kByte), 254U);
    EXPECT_EQ(ulps_between(~uint64_t{0}, 1, at::kLong), 2U);
}

TEST(FindDifference, NamesTheFirstElementAndTheLargest) {
    const at::Tensor a = at::zeros({2, 3}, at::kFloat);
    EXPECT_FALSE(find_difference(a, a.clone()));
    at::Tensor b = a.clone();
    auto* values = b.mutable_data_ptr<float>();
    values[4] = std::numeric_limits<float>::denorm_min();
    values[5] = std::bit_cast<float>(7U);
    const auto difference = find_difference(a, b);
    ASSERT_TRUE(difference);
    EXPECT_EQ(difference->index, (std::vector<int64_t>{1, 1}));
    EXPECT_EQ(difference->ulps, 1U);
    EXPECT_EQ(difference->most_ulps, 7U);
    EXPECT_EQ(difference->num_different, 2);
    EXPECT_EQ(
        difference->text(),
        "element [1, 1]: reference 0 (0x0p+0), pipeline 1.40129846e-45 (0x1p-149), 1 ulp; 2 of 6 elements differ, "
        "by up to 7 ulps");
}

TEST(FindDifference, SeesTheSignOfZeroAndReadsAnyStrides) {
    const at::Tensor a = at::zeros({1}, at::kFloat);
    const auto zero = find_difference(a, a.neg());
    ASSERT_TRUE(zero);
    EXPECT_EQ(zero->ulps, 0U);
    const at::Tensor square = at::tensor({1, 2, 3, 4}, at::kLong).view({2, 2});
    EXPECT_FALSE(find_difference(square.t(), square.t().contiguous()));
    EXPECT_EQ(find_difference(square, square.t())->index, (std::vector<int64_t>{0, 1}));
}

TEST(FindDifference, NamesDtypesAndShapesThatAreNotAlike) {
    const at::Tensor a = at::zeros({2}, at::kFloat);
    EXPECT_EQ(find_difference(a, at::zeros({3}, at::kFloat))->text(), "reference float32[2], pipeline float32[3]");
    EXPECT_EQ(find_difference(a, a.to(at::kDouble))->text(), "reference float32[2], pipeline float64[2]");
}

}  // namespace
}  // namespace vpp::test
