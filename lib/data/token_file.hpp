#pragma once
// A token file of any form that the kind tokens reads, and the index of its documents beside it.
#include <filesystem>
#include <optional>
#include <string>

#include "data/documents.hpp"
#include "data/windows.hpp"

namespace vpp::detail {

/// FILE.idx beside FILE.bin, where it is there.
std::optional<std::filesystem::path> index_beside(const std::string& path);

/// Requires: dtype is auto, uint16 or uint32.
/// Throws:   Error{MissingInput, BadData, Io}.
TokenFile open_token_file(const std::string& path, const std::string& dtype);

/// The documents that the index beside the file tells.
/// Throws: Error{BadData} without an index, or for one that does not hold together.
DocumentFile open_documents(TokenFile file);

}  // namespace vpp::detail
