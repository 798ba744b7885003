#pragma once
// The weights in a folder that is no checkpoint, such as a downloaded model.
#include <filesystem>

namespace vpp {

/// The folder's one index of safetensors files, else its one safetensors file. Looks at names only.
/// Throws: Error{MissingInput} when it has none of them, Error{BadData} when it has several, Error{Io}.
std::filesystem::path weights_in(const std::filesystem::path& folder);

}  // namespace vpp
