#include "graph/flops.hpp"

#include <gtest/gtest.h>

namespace vpp {
namespace {

TEST(Flops, ProductsCountTwoPerMultiplyAdd) {
    // [8, 16] x [32, 16]^T
    EXPECT_EQ(op_flops("aten::linear", {{8, 16}, {32, 16}, {32}}, {{8, 32}}, 0), 2.0 * 8 * 32 * 16);
    EXPECT_EQ(op_flops("aten::mm", {{8, 16}, {16, 32}}, {{8, 32}}, 0), 2.0 * 8 * 32 * 16);
    EXPECT_EQ(op_flops("aten::bmm", {{3, 8, 16}, {3, 16, 32}}, {{3, 8, 32}}, 0), 2.0 * 3 * 8 * 32 * 16);
    EXPECT_EQ(op_flops("aten::addmm", {{32}, {8, 16}, {16, 32}}, {{8, 32}}, 0), 2.0 * 8 * 32 * 16);
    EXPECT_EQ(op_flops("aten::matmul", {{16}, {16}}, {{}}, 0), 2.0 * 16) << "a dot product";
}

TEST(Flops, ConvolutionsCountTheirKernels) {
    const Shape input{2, 4, 10, 10}, output{2, 8, 10, 10};
    EXPECT_EQ(op_flops("aten::conv2d", {input, {8, 4, 3, 3}, {8}}, {output}, 0), 2.0 * 2 * 8 * 100 * 4 * 9);
    EXPECT_EQ(op_flops("aten::conv2d", {input, {8, 2, 3, 3}}, {output}, 0), 2.0 * 2 * 8 * 100 * 2 * 9) << "two groups";
}

TEST(Flops, AttentionIsTwoProducts) {
    const Shape q{2, 4, 6, 8}, k{2, 4, 10, 8};
    EXPECT_EQ(op_flops("aten::scaled_dot_product_attention", {q, k, k}, {q}, 0), 2 * 2.0 * 2 * 4 * 6 * 10 * 8);
}

TEST(Flops, OthersCountWhatTheyMake) {
    EXPECT_EQ(op_flops("aten::relu", {{8, 16}}, {{8, 16}}, 128), 128);
    EXPECT_EQ(op_flops("aten::view", {{8, 16}}, {{128}}, 0), 0) << "views are free";
    EXPECT_EQ(op_flops("aten::linear", {{8, 16}}, {{8, 32}}, 5), 5) << "not the form that the formula knows";
    EXPECT_EQ(op_flops("aten::linear", {{8, 16}, {32, 16}}, {}, 5), 5);
}

TEST(Flops, EmptyAndScalarShapesAreNoCrash) {
    EXPECT_EQ(op_flops("aten::conv2d", {{0, 4}, {}}, {{0}}, 0), 0);
    EXPECT_EQ(op_flops("aten::linear", {{}, {}}, {{}}, 0), 2);
    EXPECT_EQ(op_flops("aten::scaled_dot_product_attention", {{}, {}, {}}, {{}}, 0), 1);
}

}  // namespace
}  // namespace vpp
