#pragma once
// Files that are no data as they are, though their bytes could be read as a text or as tokens: the one place that knows
// how such files begin, and what is to be done with them.
#include <string>
#include <string_view>

#include "base/file.hpp"

namespace vpp {

struct ForeignFile {
    std::string_view begin;
    std::string what;    ///< "a PNG picture"
    std::string remedy;  ///< what to do with it
};

/// The kind of file that begins so; null where it is none of those that are known.
const ForeignFile* find_foreign_file(std::string_view begin);

/// What to say of a file that is read as a text all the same: that it is one of those, JSON, a table, or no text.
/// Empty where nothing is odd about it.
std::string note_on_text(const InputFile& file);

/// The same for tokens, which may be any bytes.
std::string note_on_tokens(const InputFile& file);

/// Throws: Error{BadData} for one of the files that are known.
void refuse_foreign_file(const InputFile& file);

/// Throws: Error{BadData} for a folder where a file was expected.
void refuse_folder(const std::string& path);

}  // namespace vpp
