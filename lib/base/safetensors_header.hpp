#pragma once
// The header of a safetensors file, of checkpoints and of data: who lies where. Pure functions over bytes, no files:
// the part that meets hostile input and that the fuzzer drives. The format is that of Hugging Face's safetensors,
// version 0.x of its format page: 8 bytes little-endian length h, h bytes JSON, then the data without holes.
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"
#include "base/tensor_bytes.hpp"

namespace vpp {

/// The largest header that is read or written; the limit of the reference implementation.
inline constexpr uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;
/// The longest tensor name.
inline constexpr size_t kMaxTensorNameBytes = 1024;

/// Where one tensor lies.
struct SafetensorsEntry {
    std::string name;
    DType dtype = DType::F32;
    std::vector<int64_t> shape;
    uint64_t begin_bytes = 0;  ///< from the start of the file
    uint64_t end_bytes = 0;    ///< one past its last byte, from the start of the file
};

struct SafetensorsHeader {
    std::vector<SafetensorsEntry> entries;        ///< in order of name
    std::map<std::string, std::string> metadata;  ///< the "__metadata__" object
};

/// Reads and checks the header of a whole file. What it returns is safe to use: names are plain text, every range lies
/// inside the file, ranges touch and do not overlap, dtype and shape give exactly the bytes of the range.
/// Requires: `file` is the whole file.
/// Throws:   Error{BadData} that begins with `source` and names the tensor.
/// Source:   safetensors format page, "Format" and "Benefits" (header limit, no holes, no duplicate keys).
SafetensorsHeader parse_safetensors(std::span<const std::byte> file, const std::string& source);

/// How many bytes of a file the length and the header take together, by its first 8 bytes.
/// Throws: Error{BadData} that begins with `source` for more than the file or the limit.
uint64_t safetensors_header_end(std::span<const std::byte> begin, uint64_t size_bytes, const std::string& source);

/// The same as parse_safetensors of a whole file, from its beginning up to safetensors_header_end alone.
SafetensorsHeader parse_safetensors_begin(std::span<const std::byte> begin, uint64_t size_bytes,
                                          const std::string& source);

/// The first bytes of a file: length and padded JSON, so that the data begins at a multiple of 64 bytes.
/// Shape:    data lies in the order of `tensors`, without holes; the caller writes the bytes in this order.
/// Requires: bytes of each tensor = dtype size x shape; names are distinct.
/// Throws:   Error{BadData} for a name or metadata that the format cannot hold, or a header over the limit.
std::string make_safetensors_header(const std::vector<const TensorBytes*>& tensors,
                                    const std::map<std::string, std::string>& metadata);

/// Why a tensor name cannot be in a file; empty when it can: 1 to 1024 bytes of UTF-8 without control bytes, and not
/// the reserved "__metadata__".
std::string name_problem(std::string_view name);

}  // namespace vpp
