#pragma once
// The directory of a zip file: which entries there are and where their bytes lie. Pure functions over bytes, for the
// stored entries of .npz files; what is compressed is listed and told apart.
// Source: PKWARE's APPNOTE.TXT 6.3.10, sections 4.3.7, 4.3.12 and 4.3.14 to 4.3.16.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace vpp::detail {

/// Where the directory lies. Invariant: inside the file, and the records that end the file follow it at once.
struct ZipEnd {
    uint64_t offset_bytes = 0;
    uint64_t size_bytes = 0;
    uint64_t num_entries = 0;
};

struct ZipEntry {
    std::string name;
    uint64_t header_offset_bytes = 0;  ///< of its local header
    uint64_t size_bytes = 0;           ///< as it is stored
    bool stored = false;               ///< neither compressed nor encrypted
};

/// The most of a file's end that the records behind the directory take, a comment included.
inline constexpr size_t kMaxZipEndBytes = 56 + 20 + 22 + 65535;
/// The largest directory that is read.
inline constexpr uint64_t kMaxZipDirectoryBytes = uint64_t{1} << 26;
inline constexpr size_t kZipLocalHeaderBytes = 30;

/// `tail`: the last kMaxZipEndBytes of the file, or all of a shorter one.
/// Throws Error{BadData} that begins with `source`.
ZipEnd zip_end(std::span<const std::byte> tail, uint64_t size_bytes, const std::string& source);

/// The entries, in the order of the directory; each begins before it and has room there.
/// `directory`: the bytes that zip_end found. Throws Error{BadData} with the offset in the file.
std::vector<ZipEntry> zip_entries(std::span<const std::byte> directory, const ZipEnd& end, const std::string& source);

/// Where the bytes of a stored entry begin; they end before the directory.
/// `local_header`: the kZipLocalHeaderBytes at its offset and the name behind them.
/// Throws Error{BadData} with the offset in the file.
uint64_t zip_data_offset(std::span<const std::byte> local_header, const ZipEntry& entry, const ZipEnd& end,
                         const std::string& source);

}  // namespace vpp::detail
