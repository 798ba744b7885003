#pragma once
// The weights in a folder that is no checkpoint, such as a downloaded model.
#include <filesystem>
#include <string_view>

namespace vpp {

/// "model.safetensors.index.json", and "model.safetensors.index.fp16.json" of another precision.
bool is_index_name(std::string_view name);

/// The folder's one index of safetensors files, else its one safetensors file. Looks at names only.
/// Throws: Error{MissingInput} when it has none of them, Error{BadData} when it has several, Error{Io}.
std::filesystem::path weights_in(const std::filesystem::path& folder);

}  // namespace vpp
