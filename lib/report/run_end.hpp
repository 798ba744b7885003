#pragma once
// How a training ended, in its run folder until the next one begins there: <run>/end.json
//
//   {"exit_code":79,"text":"rank 0: step 2: the loss is nan ..."}
//
// A training that was killed leaves none, and one that is under way has none.
#include <filesystem>
#include <optional>
#include <string>

namespace vpp {

struct RunEnd {
    int exit_code = 0;  ///< base/error.hpp
    std::string text;   ///< the error; how far it came where there was none

    /// Neither done nor stopped as asked.
    bool is_failure() const;
    /// "failed with 79", "stopped", "done"
    std::string state() const;
};

/// A training begins in this folder.
void forget_run_end(const std::filesystem::path& run_folder);

/// Keeps how it ended. Where several tell it, the first one counts: the others end because of it.
/// Gives: whether this one is the first; false, too, when it cannot be written.
bool keep_run_end(const std::filesystem::path& run_folder, const RunEnd& end);

/// Nothing when there is none.
/// Throws: Error{BadData} for a file that is no such end, Error{Io}.
std::optional<RunEnd> read_run_end(const std::filesystem::path& run_folder);

}  // namespace vpp
