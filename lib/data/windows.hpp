#pragma once
// Token files cut into windows: what the kinds tokens and text share. Letters: T = sequence length.
// Window i of a file is [iT, iT + T]: T tokens, and the same shifted by one as targets, so neighbours share one token.
// Several files are put one after another; no window crosses a border.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "data/dataset.hpp"

namespace vpp::detail {

/// A file of unsigned little-endian tokens.
struct TokenFile {
    InputFile file;
    size_t offset_bytes = 0;  ///< where the tokens begin
    size_t token_bytes = 1;   ///< 1, 2, 4 or 8
    int64_t num_tokens = 0;
};

/// Reads out.size() / 8 tokens from number `first` on, as int64.
/// Requires: they lie inside the file. Throws: as InputFile::read.
void read_tokens(const TokenFile& file, int64_t first, std::span<std::byte> out);

/// The files that the plan names for a subset.
const std::vector<std::string>& files_of(const Plan& plan, Subset subset);

/// Throws Error{Plan} when the plan names no training file or no sequence length.
void check_token_keys(const Plan& plan);

/// Windows over the files, as fields tokens and targets, int64, [T].
/// `kind` enters the digest; `bound` is the fields' bound: 0 unless the format proves one.
/// Requires: sequence_length >= 1; at least one file; every file's tokens lie inside it.
/// Throws:   Error{BadData} for a file that has not even one window: it would be left out in silence otherwise.
std::unique_ptr<Dataset> make_windows(std::string kind, std::vector<TokenFile> files, int64_t sequence_length,
                                      int64_t bound);

}  // namespace vpp::detail
