#pragma once
// Whether something is there, and what. A disk that does not tell is an error of its own here: taken for "nothing is
// there", it would make a run forget its checkpoints.
#include <filesystem>

namespace vpp {

/// Of what has that name, not of what a link leads to; file_type::not_found where nothing has it.
/// Throws Error{Io} where that cannot be found out.
std::filesystem::file_status status_of(const std::filesystem::path& path);

/// Throws as status_of.
bool is_there(const std::filesystem::path& path);
bool is_folder(const std::filesystem::path& path);
/// Something that is no folder, as a link to one.
bool is_other_than_folder(const std::filesystem::path& path);

}  // namespace vpp
