#pragma once
// From a DType to the C++ type of its numbers.
#include <cstdint>

#include "base/dtype.hpp"

namespace vpp::detail {

/// Calls back with a number of the type, 0: `with_number_type(dtype, [](auto number) { using T = decltype(number); })`.
/// Returns: false, without a call, for the halves, which C++20 has no type for, and for Bool.
template <typename Call>
bool with_number_type(DType dtype, const Call& call) {
    switch (dtype) {
        case DType::F32:
            return call(float{}), true;
        case DType::F64:
            return call(double{}), true;
        case DType::I64:
            return call(int64_t{}), true;
        case DType::I32:
            return call(int32_t{}), true;
        case DType::I16:
            return call(int16_t{}), true;
        case DType::I8:
            return call(int8_t{}), true;
        case DType::U8:
            return call(uint8_t{}), true;
        case DType::U16:
            return call(uint16_t{}), true;
        case DType::U32:
            return call(uint32_t{}), true;
        case DType::F16:
        case DType::BF16:
        case DType::Bool:
            return false;
    }
    return false;
}

}  // namespace vpp::detail
