#pragma once
// Megatron-LM's index of a token file: data.idx beside data.bin. It says how wide the tokens are, and where the
// documents begin. Pure functions over bytes: the part that meets hostile input and that the fuzzer drives.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace vpp::detail {

/// "MMIDIDX", two zero bytes, version 1 (uint64), a code of the type (uint8), numbers of sequences and of document
/// borders (uint64 each). Behind it: the lengths of the sequences (int32), where they begin in bytes (int64), the
/// borders (int64), and for some a mode (int8) for each sequence.
/// Source: Megatron-LM, megatron/core/datasets/indexed_dataset.py.
inline constexpr size_t kMegatronHeaderBytes = 9 + 8 + 1 + 8 + 8;

struct MegatronIndex {
    size_t token_bytes = 2;  ///< 1, 2, 4 or 8
    uint64_t num_sequences = 0;
    uint64_t num_borders = 0;

    uint64_t last_length_at() const { return kMegatronHeaderBytes + 4 * (num_sequences - 1); }
    uint64_t last_begin_at() const { return kMegatronHeaderBytes + 4 * num_sequences + 8 * (num_sequences - 1); }
};

/// Whether a file that begins so is one.
bool is_megatron_index(std::span<const std::byte> begin);

/// Requires: `begin` is the first kMegatronHeaderBytes of the file, or all of a shorter one.
/// On return there is at least one sequence, and the lists that are announced fit into `size_bytes`.
/// Throws:   Error{BadData} that begins with `source`.
MegatronIndex megatron_index(std::span<const std::byte> begin, uint64_t size_bytes, const std::string& source);

/// Holds the last sequence of an index to the size of its token file.
/// Throws: Error{BadData} that begins with `source`, the token file, and ends with `remedy`.
void check_megatron_end(int64_t last_begin, int32_t last_length, size_t token_bytes, uint64_t size_bytes,
                        const std::string& source, const std::string& remedy = "copy both again");

/// Where the documents begin, and where the last one ends: in tokens, ascending from 0 to num_tokens.
/// Requires: `lists` is what the file holds behind the header; `index` is that header.
/// Throws:   Error{BadData} that begins with `source`, the index, when the sequences do not lie one behind the other
/// from
///           the begin of the token file to its end, or the borders do not cut them into documents.
std::vector<int64_t> megatron_documents(const MegatronIndex& index, std::span<const std::byte> lists,
                                        int64_t num_tokens, const std::string& source);

}  // namespace vpp::detail
