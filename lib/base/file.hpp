#pragma once
// Files: read-only maps, whole small files with a size limit, and durable writes (write, fsync, rename, fsync).
// Errors name the path: Error{MissingInput} when it is not there, Error{Io} when reading or writing fails.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace vpp {

/// A file mapped read-only for its whole length; the bytes live as long as the object. An empty file is an empty span.
class MappedFile {
  public:
    explicit MappedFile(const std::filesystem::path& path);
    ~MappedFile();
    MappedFile(MappedFile&& other) noexcept;
    MappedFile& operator=(MappedFile&& other) noexcept;
    std::span<const std::byte> bytes() const { return {data_, size_}; }
    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
    const std::byte* data_ = nullptr;
    size_t size_ = 0;
};

/// A file that is read in pieces, wherever they lie. Others may shorten it meanwhile: what is then missing is an error,
/// where a mapped file would end the process. Any thread may read.
class InputFile {
  public:
    /// Throws Error{MissingInput, BadData, Io}.
    explicit InputFile(const std::filesystem::path& path);
    ~InputFile();
    InputFile(InputFile&& other) noexcept;
    InputFile& operator=(InputFile&& other) noexcept;
    /// As it was opened.
    uint64_t size_bytes() const { return size_bytes_; }
    const std::filesystem::path& path() const { return path_; }
    /// Throws Error{BadData} with file and offset when the file ends before; Error{Io}.
    void read(uint64_t offset, std::span<std::byte> out) const;

  private:
    std::filesystem::path path_;
    int fd_ = -1;
    uint64_t size_bytes_ = 0;
};

/// The whole file as text. Throws Error{BadData} when it is larger than `limit_bytes`.
std::string read_text_file(const std::filesystem::path& path, uint64_t limit_bytes);

/// What an errno says of a file or folder that could not be made: Output for a place that a person names wrongly, or
/// may not write to; Io where the disk or the system fails, which may do it later.
ErrorKind kind_of_failed_creation(int error_number);

/// A file being written; every write is checked. `finish` fsyncs and closes; without it nothing is promised.
class OutputFile {
  public:
    /// Creates or truncates. Throws Error{Output, Io}, by kind_of_failed_creation.
    explicit OutputFile(const std::filesystem::path& path);
    ~OutputFile();
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;
    void write(std::span<const std::byte> bytes);
    void write_text(std::string_view text);
    /// What was written so far is on the disk.
    void sync();
    void finish();

  private:
    std::filesystem::path path_;
    int fd_ = -1;
};

/// Names of what lies in a folder, sorted; a folder that is not there has none. Throws Error{Io}.
std::vector<std::string> names_in_folder(const std::filesystem::path& folder);

/// Fsyncs a folder, so that renames and creations in it survive a crash.
void sync_folder(const std::filesystem::path& folder);

/// Writes a small file under a temporary name and renames it into place, durably, behind links that lead there. A
/// device or a pipe takes the text as it is.
/// Throws: Error{Output} for a folder or a place that cannot be written; Error{Io}.
void write_file_durably(const std::filesystem::path& path, std::string_view text);

/// Whether a name read from a file is a plain file name: not empty, no separator, no "." or "..", no control byte.
bool is_plain_name(std::string_view name);

}  // namespace vpp
