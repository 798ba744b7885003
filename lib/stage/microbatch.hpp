#pragma once
// What a segment holds for one microbatch, from its first input to the last gradient that is taken.
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <map>
#include <optional>
#include <vector>

#include "stage/pass.hpp"
#include "stage/split_backward.hpp"

namespace vpp {

struct Microbatch {
    PassInputs inputs;                   ///< as they come, until forward
    std::map<int, at::Tensor> tensors;   ///< to be taken
    std::map<int, c10::IValue> values;   ///< to be taken
    std::map<int, int> pending_tensors;  ///< edges that have not taken it
    std::map<int, int> pending_values;
    at::Tensor loss;
    std::vector<at::Tensor> outputs;  ///< to be taken

    std::optional<Pass> pass;                ///< from F to B or W, or
    std::optional<PassInputs> saved;         ///< from F to B or I, or
    bool is_replayed = false;                ///< from F to B or W: a recording has what backward needs
    std::map<int, at::Tensor> arrived;       ///< by tensor
    std::map<int, at::Tensor> tied_arrived;  ///< by parameter

    std::optional<SplitBackward> split;         ///< from I to W
    std::map<int, at::Tensor> input_gradients;  ///< to be taken, by tensor
    std::map<int, at::Tensor> tied_gradients;   ///< to be taken, by parameter

    bool is_done() const {
        return pending_tensors.empty() && pending_values.empty() && outputs.empty() && !pass && !saved &&
               !is_replayed && input_gradients.empty() && tied_gradients.empty();
    }
};

}  // namespace vpp
