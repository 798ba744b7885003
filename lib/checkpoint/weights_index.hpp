#pragma once
// The index of weights that lie in several safetensors files: a JSON object whose "weight_map" says which file beside
// it has which tensor, as Hugging Face's libraries write it.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace vpp {

/// The largest index that is read.
inline constexpr uint64_t kMaxIndexBytes = 100'000'000;

/// Tensor -> file. What it returns is safe to use: files are plain names, tensors such as a safetensors file can have.
/// Throws: Error{BadData} that begins with `source`.
std::map<std::string, std::string> parse_weights_index(std::string_view text, const std::string& source);

}  // namespace vpp
