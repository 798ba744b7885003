#pragma once
// A .npy file being written, row after row. It gets its name only when it is whole and on disk.
// Source: numpy.lib.format, as data/npy.hpp.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "base/file.hpp"
#include "base/new_file.hpp"

namespace vpp {

/// The first bytes of a version 1 file, padded so that the data begin at a multiple of 64.
/// Throws Error{BadData} for bfloat16, which NumPy does not have.
std::string npy_header(DType dtype, const std::vector<int64_t>& shape);

class NpyWriter {
  public:
    /// Writes beside `path` under a temporary name.
    /// Throws Error{Output} when it cannot be made.
    NpyWriter(const std::filesystem::path& path, DType dtype, const std::vector<int64_t>& shape);

    /// The next values, in C order. Throws Error{Io}.
    void write(std::span<const std::byte> values);
    /// Syncs and closes the file. Requires: as many bytes as dtype and shape say were written.
    void finish();
    /// Removes what is to be replaced, ahead of `publish`: where another file must never lie beside it.
    void remove_old() const { place_.remove_old(); }
    /// Finishes the file where that was not done, and renames it.
    void publish();
    const std::filesystem::path& path() const { return place_.path(); }

  private:
    NewFile place_;
    OutputFile file_;
    int64_t missing_bytes_;
    bool is_finished_ = false;
};

}  // namespace vpp
