#pragma once
// The manifest of a checkpoint as text: JSON with its own checksum in the last line. FORMAT.md has the exact form.
#include <cstdint>
#include <string>
#include <string_view>

#include "checkpoint/checkpoint.hpp"

namespace vpp {

/// The one version that is written and read.
inline constexpr int kManifestVersion = 1;
/// The largest manifest that is written or read.
inline constexpr uint64_t kMaxManifestBytes = uint64_t{16} << 20;

/// The text of a manifest, checksum included. The same value gives the same bytes.
/// Requires: format_version is kManifestVersion; save id and shard names are plain; shard names are distinct.
/// Throws:   Error{BadData} when plan or facts are not UTF-8 or the text is larger than kMaxManifestBytes.
std::string manifest_to_text(const Manifest& manifest);

/// Reads and checks a manifest; the checksum is compared before anything else is looked at.
/// Throws: Error{BadData} that begins with `source` for damage or a wrong form, UnknownVersion of that kind for
///         another version; Error{Refused} for a shard name that is not a plain file name.
Manifest manifest_from_text(std::string_view text, const std::string& source);

}  // namespace vpp
