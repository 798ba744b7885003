#include "base/dtype.hpp"

#include <gtest/gtest.h>

#include <iterator>

#include "base/error.hpp"

namespace vpp {
namespace {

constexpr DType kAll[] = {DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64, DType::I32,
                          DType::I16, DType::I8,  DType::U8,  DType::U16,  DType::U32, DType::Bool};

TEST(DType, NamesAreThoseOfTorch) {
    EXPECT_EQ(name_of(DType::F32), "float32");
    EXPECT_EQ(name_of(DType::BF16), "bfloat16");
    EXPECT_EQ(name_of(DType::U16), "uint16");
    EXPECT_EQ(name_of(DType::Bool), "bool");
    for (DType dtype : kAll) EXPECT_EQ(dtype_from_name(name_of(dtype)), dtype);
    EXPECT_FALSE(dtype_from_name("float"));
    EXPECT_FALSE(dtype_from_name(""));
}

TEST(DType, AComplexOneIsNamedByBothParts) {
    EXPECT_EQ(complex_name(DType::F16), "complex32");
    EXPECT_EQ(complex_name(DType::F32), "complex64");
    EXPECT_EQ(complex_name(DType::F64), "complex128");
}

TEST(DType, SizesAndFloatingTypes) {
    EXPECT_EQ(size_of(DType::F64), 8U);
    EXPECT_EQ(size_of(DType::F16), 2U);
    EXPECT_EQ(size_of(DType::U32), 4U);
    EXPECT_EQ(size_of(DType::Bool), 1U);
    int num_floating = 0;
    for (DType dtype : kAll) num_floating += is_floating(dtype);
    EXPECT_EQ(num_floating, 4);
    EXPECT_TRUE(is_floating(DType::BF16));
    EXPECT_FALSE(is_floating(DType::I8));
}

TEST(DType, OtherBytesAreNoType) {
    for (DType dtype : kAll) EXPECT_TRUE(is_known(dtype));
    EXPECT_FALSE(is_known(static_cast<DType>(std::size(kAll))));
    EXPECT_FALSE(is_known(static_cast<DType>(255)));
}

TEST(NumElements, ProductOfTheDims) {
    EXPECT_EQ(num_elements({}), 1);
    EXPECT_EQ(num_elements({4, 128}), 512);
    EXPECT_EQ(num_elements({4, 0, 9}), 0);
    EXPECT_EQ(num_elements({int64_t{1} << 62}), int64_t{1} << 62);
}

TEST(NumElements, ImpossibleShapesAreBadData) {
    const std::vector<std::vector<int64_t>> impossible{
        {-1}, {4, -2}, {0, -1}, {int64_t{1} << 32, int64_t{1} << 31}, {INT64_MAX, INT64_MAX}, {INT64_MIN}};
    for (const std::vector<int64_t>& shape : impossible) {
        try {
            num_elements(shape);
            ADD_FAILURE() << shape_text(shape);
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), ErrorKind::BadData);
            EXPECT_EQ(error.what(), "the shape " + shape_text(shape) + " is not a possible one");
        }
    }
}

TEST(Fills, ExactlyTheBytesOfItsElements) {
    EXPECT_TRUE(fills({2, 3}, DType::F32, 24));
    EXPECT_FALSE(fills({2, 3}, DType::F32, 23));
    EXPECT_FALSE(fills({2, 3}, DType::F32, 28));
    EXPECT_FALSE(fills({2, 3}, DType::F32, 0));
    EXPECT_TRUE(fills({}, DType::I64, 8));
    EXPECT_TRUE(fills({5, 0}, DType::I64, 0));
    EXPECT_FALSE(fills({5, 0}, DType::I64, 8));
    constexpr int64_t kLarge = int64_t{1} << 32;
    EXPECT_FALSE(fills({kLarge, kLarge}, DType::U8, 0)) << "the product is 0 in 64 bits";
}

TEST(ShapeText, DimsInBrackets) {
    EXPECT_EQ(shape_text({}), "[]");
    EXPECT_EQ(shape_text({4, 128}), "[4, 128]");
}

}  // namespace
}  // namespace vpp
