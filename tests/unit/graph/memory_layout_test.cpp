#include "graph/memory_layout.hpp"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

namespace vpp {
namespace {

int64_t elements_of(const at::Tensor& tensor) {
    return payload_bytes_of(tensor) / 4;
}

TEST(MemoryLayout, WhatIsSentIsTheElements) {
    const at::Tensor table = at::zeros({4, 6});
    EXPECT_EQ(elements_of(table), 24);
    EXPECT_EQ(elements_of(table.t()), 24);
    EXPECT_EQ(elements_of(table.narrow(1, 1, 3)), 12) << "gaps stay behind";
    EXPECT_EQ(elements_of(table.narrow(1, 1, 1).expand({4, 5})), 20);
    EXPECT_EQ(elements_of(at::zeros({})), 1);
    EXPECT_EQ(elements_of(at::zeros({3, 0})), 0);
}

TEST(MemoryLayout, WindowsAreSentWithTheGapsBetweenThem) {
    EXPECT_EQ(elements_of(at::zeros({24}).unfold(0, 4, 2)), 11 * 4) << "they lie in 24";
    const at::Tensor rows = at::zeros({4, 100});
    EXPECT_EQ(elements_of(rows.narrow(1, 0, 4).unfold(1, 3, 1)), 3 * 100 + 4);
    EXPECT_EQ(elements_of(rows.narrow(1, 0, 4).unfold(1, 3, 1).unsqueeze(0).expand({5, 4, 2, 3})), 3 * 100 + 4);
}

TEST(MemoryLayout, PlacesAreSharedWhereADimStepsInsideAnother) {
    EXPECT_FALSE(overlaps({4, 3}, {3, 1}));
    EXPECT_FALSE(overlaps({4, 3}, {1, 4}));
    EXPECT_TRUE(overlaps({4, 3}, {2, 1}));
    EXPECT_TRUE(overlaps({4, 3}, {0, 1}));
    EXPECT_FALSE(overlaps({1, 3}, {0, 1}));
}

}  // namespace
}  // namespace vpp
