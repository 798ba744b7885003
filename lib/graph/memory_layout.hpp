#pragma once
// How the elements of a tensor lie in memory, which is what a message keeps of it (stage/message.hpp).
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace vpp {

/// Elements from the first to the last one in memory.
int64_t memory_extent(at::IntArrayRef sizes, at::IntArrayRef strides);

/// Whether two elements may lie at one place: dims by ascending stride must each step over all smaller ones.
bool overlaps(at::IntArrayRef sizes, at::IntArrayRef strides);

/// The sizes with every expanded dim cut down to one element.
std::vector<int64_t> base_sizes_of(const at::Tensor& tensor);

/// At most of a message's payload for a tensor of these dims: its elements; elements that lie at one place travel as
/// they lie, with the gaps between them.
/// Requires: strides.
int64_t payload_bytes_of(const at::Tensor& tensor);

}  // namespace vpp
