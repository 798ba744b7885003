#pragma once
// A folder that appears with all its files or not at all: made under a temporary name beside its place, then renamed.
#include <filesystem>

namespace vpp {

/// A place for a folder. What was not published is removed with the object.
class NewFolder {
  public:
    /// Makes the temporary folder. `path` is free, or an empty folder that is not the current one.
    /// Throws Error{Output} when something is there, or the folder around it is not there or cannot be written.
    explicit NewFolder(const std::filesystem::path& path);
    ~NewFolder();
    NewFolder(const NewFolder&) = delete;
    NewFolder& operator=(const NewFolder&) = delete;
    /// Where to write; of this process alone.
    const std::filesystem::path& temporary() const { return temporary_; }
    /// Renames into place and fsyncs the folder around it.
    /// Requires: the files in it are complete and fsynced (OutputFile::finish).
    /// Throws:   Error{Output} when something came in between; Error{Io}.
    void publish();

  private:
    std::filesystem::path path_, temporary_;
};

}  // namespace vpp
