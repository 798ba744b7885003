#pragma once
// A tensor of a safetensors file as an array of data; the header is checked whole (base/safetensors_header).
#include <string>
#include <vector>

#include "base/file.hpp"
#include "data/array_place.hpp"

namespace vpp::detail {

/// The tensor with that name. Throws Error{BadData} for a damaged header or a tensor that is not there.
ArrayPlace find_in_safetensors(const InputFile& file, const std::string& name);

/// All tensors, in order of name. Throws Error{BadData} for a damaged header.
std::vector<FoundArray> arrays_of_safetensors(const InputFile& file);

}  // namespace vpp::detail
