#pragma once
// A file that grows while others read it: a log of lines or records. What could not be written whole is taken off
// again, said once, and training goes on.
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/log.hpp"

namespace vpp {

/// Appends pieces, each by one write, so that a reader beside the run never sees two of them mixed.
/// Invariant: a piece is there whole or not at all, as long as the file can be shortened.
class AppendFile {
  public:
    /// Opens or creates the file. Requires: one writer a file.
    /// Throws: Error{Output} when that fails, or when the path is a link or no regular file.
    AppendFile(std::filesystem::path path, Logger logger);
    ~AppendFile();
    AppendFile(const AppendFile&) = delete;
    AppendFile& operator=(const AppendFile&) = delete;

    /// Whether the piece is there whole. The first failure is said in the log.
    bool append(std::string_view piece);
    /// Whether a part of a piece stands at the end, which could not be taken off.
    bool is_torn() const { return is_torn_; }
    /// Whether the file's last byte ends a line; an empty file does too.
    bool ends_a_line() const;
    int64_t num_lost() const { return num_lost_; }
    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
    Logger logger_;
    int fd_ = -1;
    bool is_torn_ = false;
    int64_t num_lost_ = 0;
};

/// The same for lines.
/// Invariant: a line begins at the start of a line, also behind what a dead process left of its last one.
class LineFile {
  public:
    /// Throws as AppendFile.
    LineFile(std::filesystem::path path, Logger logger);
    /// The line is given without its end.
    void append(std::string line);
    /// Lines that could not be written, on a full disk for one. The first of them is said in the log.
    int64_t num_lost() const { return file_.num_lost(); }

  private:
    AppendFile file_;
    bool is_torn_ = false;  ///< the file ends inside a line
};

/// What became of the lines of a file.
struct CutResult {
    int64_t num_kept = 0;
    int64_t num_later = 0;    ///< of steps beyond the cut
    int64_t num_damaged = 0;  ///< lines without a step, and a torn last line
};

/// The step of a line without its end, or nothing for a line that no reporter wrote whole.
using StepOfLine = std::function<std::optional<uint64_t>(std::string_view line)>;

/// Drops the lines of steps after `step`, for a run that resumes there: its own lines then follow. -1 drops all. Kept
/// lines keep their bytes and their order. Damaged lines are dropped and said in the log; a file that is not there is
/// nothing to cut. The file is shortened where it stands, as it may fill the disk; a process that dies meanwhile leaves
/// every kept line, those behind a dropped one maybe twice. Where they would be written over each other, a copy takes
/// the file's place by a rename; only if there is no room for it may such a death damage one of them.
/// Throws: Error{BadData} when it is no regular file, Error{Output} when it cannot be cut, as a link.
CutResult cut_lines_after(const std::filesystem::path& path, int64_t step, const StepOfLine& step_of,
                          const Logger& logger);

}  // namespace vpp
