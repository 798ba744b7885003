#include "data/halves.hpp"

#include <bit>
#include <cmath>
#include <limits>

namespace vpp::detail {

double from_float16(uint16_t bits) {
    constexpr int kFractionBits = 10, kLargestExponent = 31;
    const int exponent = (bits >> kFractionBits) & kLargestExponent, fraction = bits & ((1 << kFractionBits) - 1);
    double size = fraction * 0x1p-24;
    if (exponent > 0) size = std::ldexp((1 << kFractionBits) + fraction, exponent - 25);
    if (exponent == kLargestExponent) {
        using Limits = std::numeric_limits<double>;
        size = fraction == 0 ? Limits::infinity() : Limits::quiet_NaN();
    }
    return (bits >> 15) != 0 ? -size : size;
}

double from_bfloat16(uint16_t bits) {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

}  // namespace vpp::detail
