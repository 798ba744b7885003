#pragma once
// The losses that [loss] can append to a model, and what they ask of their targets.
#include <string>
#include <vector>

namespace vpp {

std::vector<std::string> loss_kinds();

/// Which targets LibTorch takes, forward and backward.
enum class TargetTypes {
    Classes,                 ///< int64, and uint8 where there is one a row of scores
    ClassesOrProbabilities,  ///< those, or floating point: one number a class
    SameAsOutput,            ///< the type of the output that they are compared with
    FloatingPoint,
    Numbers  ///< all but bool
};

/// Requires: one of loss_kinds().
TargetTypes target_types(const std::string& kind);

}  // namespace vpp
