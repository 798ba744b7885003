#include "data/npz.hpp"

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "base/bad_data.hpp"
#include "base/bytes.hpp"
#include "base/error.hpp"
#include "data/array_names.hpp"
#include "data/npy.hpp"
#include "data/zip_directory.hpp"

namespace vpp::detail {

namespace {

constexpr std::string_view kNpy = ".npy";

Bytes read_piece(const InputFile& file, uint64_t offset, uint64_t num_bytes) {
    Bytes piece(static_cast<size_t>(num_bytes));
    file.read(offset, piece);
    return piece;
}

uint64_t data_offset(const InputFile& file, const ZipEntry& entry, const ZipEnd& end) {
    const uint64_t header_bytes = kZipLocalHeaderBytes + entry.name.size();
    const uint64_t held = end.offset_bytes - entry.header_offset_bytes;
    const Bytes header = read_piece(file, entry.header_offset_bytes, std::min(header_bytes, held));
    return zip_data_offset(header, entry, end, file.path().string());
}

struct ZipContent {
    ZipEnd end;
    std::vector<ZipEntry> entries;
};

ZipContent content_of(const InputFile& file) {
    const std::string source = file.path().string();
    const uint64_t size = file.size_bytes(), tail_bytes = std::min<uint64_t>(size, kMaxZipEndBytes);
    const ZipEnd end = zip_end(read_piece(file, size - tail_bytes, tail_bytes), size, source);
    return {end, zip_entries(read_piece(file, end.offset_bytes, end.size_bytes), end, source)};
}

/// Requires: an entry of an array.
std::string array_of(const ZipEntry& entry) {
    return entry.name.substr(0, entry.name.size() - kNpy.size());
}

std::vector<std::string> names_of(const std::vector<ZipEntry>& entries) {
    std::vector<std::string> names;
    for (const ZipEntry& entry : entries) {
        if (entry.name.ends_with(kNpy)) names.push_back(array_of(entry));
    }
    return names;
}

ArrayPlace place_of(const InputFile& file, const ZipEntry& entry, const ZipEnd& end) {
    const std::string array = file.path().string() + ":" + array_of(entry);
    if (!entry.stored) {
        refuse_data(array, "compressed, so that no sample can be read alone; try np.savez, not np.savez_compressed");
    }
    const uint64_t begin = data_offset(file, entry, end);
    const Bytes head = read_piece(file, begin, std::min<uint64_t>(entry.size_bytes, kMaxNpyBeginBytes));
    NpyLayout layout = npy_layout({reinterpret_cast<const char*>(head.data()), head.size()}, entry.size_bytes, array);
    return {layout.header.dtype, std::move(layout.header.shape), begin + layout.offset_bytes};
}

FoundArray find_array(const InputFile& file, const ZipEntry& entry, const ZipEnd& end) {
    try {
        return {array_of(entry), place_of(file, entry, end)};
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::BadData) throw;
        return {array_of(entry), {}, error.what()};
    }
}

}  // namespace

std::vector<FoundArray> arrays_of_npz(const InputFile& file) {
    const ZipContent content = content_of(file);
    std::vector<FoundArray> arrays;
    for (const ZipEntry& entry : content.entries) {
        if (entry.name.ends_with(kNpy)) arrays.push_back(find_array(file, entry, content.end));
    }
    return arrays;
}

ArrayPlace find_in_npz(const InputFile& file, const std::string& name) {
    const auto [end, entries] = content_of(file);
    const auto entry =
        std::ranges::find_if(entries, [&](const ZipEntry& e) { return e.name == name + std::string(kNpy); });
    if (entry == entries.end()) refuse_unknown_array(name, names_of(entries), file.path().string());
    return place_of(file, *entry, end);
}

}  // namespace vpp::detail
