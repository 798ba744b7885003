#pragma once
// Two tensors that should have the same bits: where they first differ, and by how much.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace vpp {

struct TensorDifference {
    int64_t num_elements = 0;
    int64_t num_different = 0;
    std::vector<int64_t> index;       ///< of the first element that differs, in C order
    std::string reference, pipeline;  ///< its values, decimal and exact; dtypes and shapes where those differ
    uint64_t ulps = 0;                ///< between them; for integers the difference
    uint64_t most_ulps = 0;           ///< of all elements
    bool is_other_form = false;       ///< dtype or shape differ, so no elements are compared

    /// "element [0, 3]: reference 1 (0x1p+0), pipeline ..., 1 ulp; 2 of 8 elements differ, by up to 1 ulp"
    std::string text() const;
};

/// Empty when dtype, shape and all bytes are equal; +0 and -0 differ, and so do NaNs of other bits.
std::optional<TensorDifference> find_difference(const at::Tensor& reference, const at::Tensor& pipeline);

/// Units in the last place between two values of a dtype, given as their bits: how many values of that dtype lie
/// between them, plus one. 0 for +0 and -0.
uint64_t ulps_between(uint64_t a, uint64_t b, at::ScalarType dtype);

}  // namespace vpp
