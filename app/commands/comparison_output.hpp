#pragma once
// What `vpp compare`, `vpp sweep` and `vpp report` say of runs.
#include <string>

#include "compare/comparison.hpp"

namespace vpp {

/// The curve that is shown unless another one is asked for.
inline constexpr const char* kComparedCurve = "train/loss";

/// What could not be read of a run, on stderr.
void say_notes(const RecordedRun& run);

/// Table and curves on stdout, as wide as the terminal; 80 columns elsewhere.
void print_comparison(const Comparison& comparison, const std::string& curve);

}  // namespace vpp
