#pragma once
// Other forms of a plan's data that a model may take: what to do when it does not take them as they are.
#include <string>
#include <vector>

#include "graph/probe.hpp"

namespace vpp {

/// The inputs in another form, and how data are saved so.
struct InputForm {
    std::vector<ProbeInput> inputs;
    std::string advice;  ///< ", but it takes x as float32: save it so, with NumPy x.astype("float32")"
};

/// Forms that differ from `inputs` in what data often are and models seldom take, those with fewest changes first:
/// numbers in what NumPy makes unasked or pixels are kept in, and not in float32 as weights are; pictures with the
/// channels behind; single numbers in a dimension of their own.
std::vector<InputForm> other_forms(const std::vector<ProbeInput>& inputs);

}  // namespace vpp
