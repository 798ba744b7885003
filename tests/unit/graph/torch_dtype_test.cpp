#include "graph/torch_dtype.hpp"

#include <c10/core/ScalarType.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace vpp {
namespace {

TEST(TorchDType, EveryTypeGoesThereAndBack) {
    for (DType dtype : {DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64, DType::I32, DType::I16, DType::I8,
                        DType::U8, DType::U16, DType::U32, DType::Bool}) {
        EXPECT_EQ(from_torch(to_torch(dtype)), dtype);
        EXPECT_EQ(c10::elementSize(to_torch(dtype)), size_of(dtype)) << name_of(dtype);
        EXPECT_EQ(c10::isFloatingType(to_torch(dtype)), is_floating(dtype)) << name_of(dtype);
    }
}

TEST(TorchDType, ATypeIsNamedAsInPython) {
    EXPECT_EQ(dtype_name(at::kLong), "int64");
    EXPECT_EQ(dtype_name(at::kComplexFloat), "complex64");
    EXPECT_THROW(dtype_name(at::kQInt8), Error);
}

TEST(TorchDType, OthersAreRefusedByName) {
    try {
        from_torch(c10::ScalarType::ComplexFloat);
        FAIL() << "nothing was thrown";
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::BadData);
        EXPECT_STREQ(error.what(), "tensors of type ComplexFloat are not supported");
    }
    EXPECT_THROW(from_torch(c10::ScalarType::QInt8), Error);
    EXPECT_THROW(from_torch(c10::ScalarType::Float8_e4m3fn), Error);
}

}  // namespace
}  // namespace vpp
