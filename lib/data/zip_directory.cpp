#include "data/zip_directory.hpp"

#include <bit>
#include <cstring>
#include <optional>
#include <set>
#include <string_view>

#include "base/bad_data.hpp"
#include "base/error.hpp"

namespace vpp::detail {

namespace {

static_assert(std::endian::native == std::endian::little, "numbers are read as they lie on disk");

constexpr uint32_t kEndMark = 0x06054b50, kWideEndMark = 0x06064b50, kLocatorMark = 0x07064b50;
constexpr uint32_t kEntryMark = 0x02014b50, kLocalMark = 0x04034b50;
constexpr size_t kEndBytes = 22, kLocatorBytes = 20, kWideEndBytes = 56, kEntryBytes = 46;
constexpr size_t kWideRecordsBytes = kWideEndBytes + kLocatorBytes;
// Numbers that do not fit are these, and stand in full in a wide record.
constexpr uint16_t kWide16 = 0xffff, kWideTag = 0x0001;
constexpr uint32_t kWide32 = 0xffffffff;

template <typename T>
T number(std::span<const std::byte> bytes, size_t offset) {
    T value;
    std::memcpy(&value, bytes.subspan(offset, sizeof value).data(), sizeof value);
    return value;
}

std::string at_byte(const std::string& source, uint64_t offset) {
    return source + ": byte " + std::to_string(offset);
}

/// Where in the tail the last record begins: its comment ends with the file.
std::optional<size_t> find_end(std::span<const std::byte> tail) {
    if (tail.size() < kEndBytes) return std::nullopt;
    for (size_t at = tail.size() - kEndBytes + 1; at-- > 0;) {
        if (number<uint32_t>(tail, at) != kEndMark) continue;
        if (at + kEndBytes + number<uint16_t>(tail, at + 20) == tail.size()) return at;
    }
    return std::nullopt;
}

/// Whether the wide record and its locator stand before the last record, as every writer lays them. They may be there
/// though all numbers fit into the last record: Python writes them from 2 GiB on.
bool has_wide_records(std::span<const std::byte> tail, size_t end) {
    return end >= kWideRecordsBytes && number<uint32_t>(tail, end - kLocatorBytes) == kLocatorMark &&
           number<uint32_t>(tail, end - kWideRecordsBytes) == kWideEndMark;
}

/// The sizes and offsets of an entry that stand in its extra fields, in this order, each only when its short form says.
class WideNumbers {
  public:
    WideNumbers(std::span<const std::byte> extra, const std::string& where) : where_(where) {
        while (extra.size() >= 4) {
            const size_t length = number<uint16_t>(extra, 2);
            if (length > extra.size() - 4) refuse_data(where, "the extra fields of a zip entry are cut short");
            if (number<uint16_t>(extra, 0) == kWideTag) rest_ = extra.subspan(4, length);
            extra = extra.subspan(4 + length);
        }
    }

    uint64_t widen(uint32_t value) {
        if (value != kWide32) return value;
        if (rest_.size() < sizeof(uint64_t)) refuse_data(where_, "a zip entry lacks its 64-bit sizes");
        const auto wide = number<uint64_t>(rest_, 0);
        rest_ = rest_.subspan(sizeof wide);
        return wide;
    }

  private:
    std::span<const std::byte> rest_;
    const std::string& where_;
};

std::string_view text(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Whether an entry's header and bytes fit between its offset and the directory.
bool has_room(const ZipEntry& entry, uint64_t header_bytes, const ZipEnd& end) {
    if (entry.header_offset_bytes > end.offset_bytes) return false;
    const uint64_t room = end.offset_bytes - entry.header_offset_bytes;
    return header_bytes <= room && entry.size_bytes <= room - header_bytes;
}

}  // namespace

ZipEnd zip_end(std::span<const std::byte> tail, uint64_t size_bytes, const std::string& source) {
    const std::optional<size_t> at = find_end(tail);
    if (!at) refuse_data(source, "not a zip file: its end is missing; try np.savez, or copy the file anew");
    const auto record = tail.subspan(*at, kEndBytes);
    uint64_t records_begin = size_bytes - tail.size() + *at;
    const std::string where = at_byte(source, records_begin);
    if (number<uint32_t>(record, 4) != 0 || number<uint16_t>(record, 8) != number<uint16_t>(record, 10)) {
        refuse_data(where, "a zip archive of several files is not read");
    }
    ZipEnd end{number<uint32_t>(record, 16), number<uint32_t>(record, 12), number<uint16_t>(record, 10)};
    if (has_wide_records(tail, *at)) {
        const auto wide_record = tail.subspan(*at - kWideRecordsBytes, kWideEndBytes);
        end = {number<uint64_t>(wide_record, 48), number<uint64_t>(wide_record, 40), number<uint64_t>(wide_record, 32)};
        records_begin -= kWideRecordsBytes;
    } else if (end.num_entries == kWide16 || end.size_bytes == kWide32 || end.offset_bytes == kWide32) {
        refuse_data(where, "the zip file lacks its 64-bit end record");
    }
    if (end.size_bytes > kMaxZipDirectoryBytes) {
        refuse_data(where, "a zip directory of " + std::to_string(end.size_bytes) + " bytes (expected at most " +
                               std::to_string(kMaxZipDirectoryBytes) + ")");
    }
    if (end.offset_bytes > records_begin || end.size_bytes != records_begin - end.offset_bytes) {
        refuse_data(where, "the zip directory does not fit the file (got " + std::to_string(end.size_bytes) +
                               " bytes from byte " + std::to_string(end.offset_bytes) +
                               " on); the file is cut short or damaged");
    }
    return end;
}

std::vector<ZipEntry> zip_entries(std::span<const std::byte> directory, const ZipEnd& end, const std::string& source) {
    check(directory.size() == end.size_bytes, "the directory is whole");
    std::vector<ZipEntry> entries;
    std::set<std::string> names;
    size_t at = 0;
    while (at < directory.size()) {
        const std::string where = at_byte(source, end.offset_bytes + at);
        const auto rest = directory.subspan(at);
        if (rest.size() < kEntryBytes || number<uint32_t>(rest, 0) != kEntryMark) {
            refuse_data(where, "the zip directory is damaged");
        }
        const size_t name_bytes = number<uint16_t>(rest, 28), extra_bytes = number<uint16_t>(rest, 30);
        const size_t whole = kEntryBytes + name_bytes + extra_bytes + number<uint16_t>(rest, 32);
        if (whole > rest.size()) refuse_data(where, "a zip entry reaches behind the directory");
        ZipEntry entry;
        entry.name = text(rest.subspan(kEntryBytes, name_bytes));
        WideNumbers wide(rest.subspan(kEntryBytes + name_bytes, extra_bytes), where);
        const uint64_t unpacked = wide.widen(number<uint32_t>(rest, 24));
        entry.size_bytes = wide.widen(number<uint32_t>(rest, 20));
        entry.header_offset_bytes = wide.widen(number<uint32_t>(rest, 42));
        const bool encrypted = (number<uint16_t>(rest, 8) & 1) != 0;
        entry.stored = number<uint16_t>(rest, 10) == 0 && !encrypted;
        const std::string shown = "the zip entry '" + printable(entry.name) + "' ";
        if (!names.insert(entry.name).second) refuse_data(where, shown + "is there twice");
        if (entry.stored && unpacked != entry.size_bytes) {
            refuse_data(where, shown + "has two sizes (got " + std::to_string(entry.size_bytes) + " and " +
                                   std::to_string(unpacked) + " bytes)");
        }
        if (!has_room(entry, kZipLocalHeaderBytes, end)) refuse_data(where, shown + "does not fit the file");
        entries.push_back(std::move(entry));
        at += whole;
    }
    if (entries.size() != end.num_entries) {
        refuse_data(at_byte(source, end.offset_bytes), "the zip directory has " + std::to_string(entries.size()) +
                                                           " entries (expected " + std::to_string(end.num_entries) +
                                                           ")");
    }
    return entries;
}

uint64_t zip_data_offset(std::span<const std::byte> local_header, const ZipEntry& entry, const ZipEnd& end,
                         const std::string& source) {
    check(entry.stored, "only stored entries lie in the file as they are");
    const std::string where = at_byte(source, entry.header_offset_bytes);
    const bool whole = local_header.size() == kZipLocalHeaderBytes + entry.name.size();
    if (!whole || number<uint32_t>(local_header, 0) != kLocalMark || number<uint16_t>(local_header, 8) != 0 ||
        number<uint16_t>(local_header, 26) != entry.name.size() ||
        text(local_header.subspan(kZipLocalHeaderBytes)) != entry.name) {
        refuse_data(where, "the zip entry '" + printable(entry.name) + "' has another header than the directory says");
    }
    const uint64_t header_bytes = local_header.size() + number<uint16_t>(local_header, 28);
    if (!has_room(entry, header_bytes, end)) {
        refuse_data(where, "the bytes of the zip entry '" + printable(entry.name) + "' reach into the directory");
    }
    return entry.header_offset_bytes + header_bytes;
}

}  // namespace vpp::detail
