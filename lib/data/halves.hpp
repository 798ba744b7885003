#pragma once
// Numbers of 16 bits, which C++20 has no type for.
#include <cstdint>

namespace vpp::detail {

/// The number that a float16 (IEEE 754 binary16) stands for; exact.
double from_float16(uint16_t bits);

/// The number that a bfloat16, the upper half of a float32, stands for; exact.
double from_bfloat16(uint16_t bits);

}  // namespace vpp::detail
