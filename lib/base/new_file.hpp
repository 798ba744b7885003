#pragma once
// A result file that appears whole or not at all: written under a temporary name beside its place, then renamed.
#include <filesystem>

namespace vpp {

/// A place for a file. What was not published is removed with the object.
class NewFile {
  public:
    /// Throws Error{Output} when something is there that may not be replaced, or its folder is not there.
    NewFile(std::filesystem::path path, bool overwrite);
    ~NewFile();
    NewFile(const NewFile&) = delete;
    NewFile& operator=(const NewFile&) = delete;
    const std::filesystem::path& path() const { return path_; }
    /// Where to write; of this process alone.
    const std::filesystem::path& temporary() const { return temporary_; }
    /// Renames into place and fsyncs the folder.
    /// Requires: the temporary file is complete and fsynced (OutputFile::finish).
    /// Throws:   Error{Io}.
    void publish();

  private:
    std::filesystem::path path_, temporary_;
};

}  // namespace vpp
