#pragma once
// Data from no file: every value is a pure function of (sample, field, element), the same on every machine and for
// every training, since the seed of the plan does not enter. For trying models and measuring speed.
#include <cstdint>
#include <string>

#include "data/fields.hpp"

namespace vpp {

/// Parses "float32[3, 32, 32]" (float32 or float64), "int64[] < 10" (integers, which need the bound) or "bool[4]".
/// Throws Error{BadData} with what is wrong and an example; open_dataset adds the place in the plan.
Field parse_synthetic_field(const std::string& name, const std::string& text);

/// The keyed number behind one element.
uint64_t synthetic_bits(int64_t sample, int field, int64_t element);
/// Bell-shaped, mean 0, variance 1, within +-3.47: the sum of four uniform 16-bit numbers, exact in a double. No call
/// of a mathematics library, so that the bits do not depend on one.
double synthetic_normal(uint64_t bits);

}  // namespace vpp
