#pragma once
// The beginning of a token file: llm.c's header, or none (nanoGPT). Pure functions over bytes: the part that meets
// hostile input and that the fuzzer drives.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace vpp::detail {

/// llm.c: 256 int32 (magic, version, number of tokens, then zeros), then the tokens.
/// Source: llm.c, dev/data/data_common.py, write_datafile.
inline constexpr size_t kTokenHeaderBytes = 256 * sizeof(int32_t);

/// Where the tokens lie.
struct TokenLayout {
    size_t offset_bytes = 0;
    size_t token_bytes = 2;  ///< 2 or 4
    int64_t num_tokens = 0;
};

/// Reads the header that the first number announces, and holds it to the file's size; a file that begins with no such
/// number is all tokens.
/// Requires: `begin` is the first kTokenHeaderBytes of the file, or all of a shorter one; dtype is auto, uint16 or
///           uint32. On return the tokens lie inside the file and fill it.
/// Throws:   Error{BadData} that begins with `source`.
TokenLayout token_layout(std::span<const std::byte> begin, uint64_t size_bytes, const std::string& dtype,
                         const std::string& source);

}  // namespace vpp::detail
