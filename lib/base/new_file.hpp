#pragma once
// A result file that appears whole or not at all: written under a temporary name beside its place, then renamed.
#include <filesystem>

namespace vpp {

/// A place for a file, behind the links that lead there. What was not published is removed with the object.
class NewFile {
  public:
    /// Throws Error{Output} when something is there that may not be replaced or is no file, or its folder is not there
    /// or cannot be written; Error{Io} when the disk is full.
    NewFile(std::filesystem::path path, bool overwrite);
    ~NewFile();
    NewFile(const NewFile&) = delete;
    NewFile& operator=(const NewFile&) = delete;
    /// As it was named.
    const std::filesystem::path& path() const { return path_; }
    /// An empty file of this object alone, to write into.
    const std::filesystem::path& temporary() const { return temporary_; }
    /// Removes what is to be replaced, ahead of `publish`: where another file must never lie beside it.
    /// Throws: Error{Io}.
    void remove_old() const;
    /// Renames into place and fsyncs the folder.
    /// Requires: the temporary file is complete and fsynced (OutputFile::finish).
    /// Throws:   Error{Output} when something came there meanwhile that may not be replaced; Error{Io}.
    void publish();

  private:
    std::filesystem::path path_, target_, temporary_;
    bool overwrite_;
};

}  // namespace vpp
