#pragma once
// Forward FLOPs of one op from the shapes of its tensors; a multiply-add counts two. Matrix products, convolutions and
// attention by their formulas, everything else one per element it makes; views and no-ops nothing.
#include <cstdint>
#include <string>
#include <vector>

namespace vpp {

using Shape = std::vector<int64_t>;

/// `inputs` holds the shapes of the op's tensors in argument order, parameters among them (lists flattened);
/// `new_elements` counts the elements of outputs that are not views of inputs.
double op_flops(const std::string& kind, const std::vector<Shape>& inputs, const std::vector<Shape>& outputs,
                int64_t new_elements);

}  // namespace vpp
