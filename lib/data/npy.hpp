#pragma once
// NumPy's .npy files, versions 1 to 3: little endian, C order, plain numbers; checked when opened.
// Source: numpy.lib.format, https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/dtype.hpp"
#include "base/file.hpp"

namespace vpp {

/// The three entries of a header.
struct NpyHeader {
    DType dtype = DType::F32;
    std::vector<int64_t> shape;
};

/// Parses the header's text, a Python dict literal of descr, fortran_order and shape; `source` names the file.
/// Throws Error{BadData} for anything else, and with a remedy for Fortran order, object and other dtypes.
NpyHeader parse_npy_header(std::string_view text, const std::string& source);

/// A whole file's header, and where its data begin.
struct NpyLayout {
    NpyHeader header;
    uint64_t offset_bytes = 0;
};

/// The most of a file's beginning that a header takes.
inline constexpr size_t kMaxNpyBeginBytes = 10'012;

/// Finds and parses the header. `begin`: the first kMaxNpyBeginBytes of the file, or all of a shorter one.
/// On return the data of the header's shape fill the rest of the `size_bytes` exactly.
/// Throws Error{BadData} that begins with `source`.
NpyLayout npy_layout(std::string_view begin, uint64_t size_bytes, const std::string& source);

/// An open .npy file. Invariant: the data are exactly the header's shape of its dtype.
class NpyFile {
  public:
    /// Throws Error{MissingInput, BadData, Io}.
    explicit NpyFile(const std::string& path);
    DType dtype() const { return header_.dtype; }
    const std::vector<int64_t>& shape() const { return header_.shape; }
    uint64_t data_bytes() const { return file_.size_bytes() - offset_bytes_; }
    /// Bytes of the data, from `offset` on. Throws: as InputFile::read.
    void read(uint64_t offset, std::span<std::byte> out) const { file_.read(offset_bytes_ + offset, out); }
    const InputFile& file() const { return file_; }
    InputFile take_file() && { return std::move(file_); }

  private:
    InputFile file_;
    NpyHeader header_;
    uint64_t offset_bytes_ = 0;
};

}  // namespace vpp
