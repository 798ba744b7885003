#pragma once
// What `vpp compare` and `vpp sweep` show of runs side by side.
#include <string>

#include "compare/comparison.hpp"

namespace vpp {

/// The curve that is shown unless another one is asked for.
inline constexpr const char* kComparedCurve = "train/loss";

/// What could not be read, on stderr.
void say_notes(const Comparison& comparison);

/// Table and curves on stdout, as wide as the terminal; 80 columns elsewhere.
void print_comparison(const Comparison& comparison, const std::string& curve);

}  // namespace vpp
