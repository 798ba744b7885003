#pragma once
// Zip files as np.savez writes them: every local header has 64-bit sizes, the directory has short ones where they do.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace vpp::test {

struct ZipItem {
    std::string name, bytes;
    uint16_t method = 0;  ///< 8: deflated
    uint16_t flags = 0;   ///< 1: encrypted
    std::string local_name = name;
    bool wide = false;  ///< 64-bit numbers in the directory too
};

/// Little endian, so many bytes of it.
inline std::string little(uint64_t value, size_t num_bytes) {
    std::string text(num_bytes, '\0');
    std::memcpy(text.data(), &value, num_bytes);
    return text;
}

inline std::string zip_local(const ZipItem& item) {
    const uint64_t size = item.bytes.size();
    return "PK\3\4" + little(45, 2) + little(item.flags, 2) + little(item.method, 2) + std::string(8, '\0') +
           std::string(8, '\xff') + little(item.local_name.size(), 2) + little(20, 2) + item.local_name + little(1, 2) +
           little(16, 2) + little(size, 8) + little(size, 8) + item.bytes;
}

inline std::string zip_listing(const ZipItem& item, uint64_t offset) {
    const uint64_t size = item.bytes.size();
    const std::string extra =
        item.wide ? little(1, 2) + little(24, 2) + little(size, 8) + little(size, 8) + little(offset, 8) : "";
    const auto number = [&](uint64_t value) { return item.wide ? std::string(4, '\xff') : little(value, 4); };
    return "PK\1\2" + little(45, 2) + little(45, 2) + little(item.flags, 2) + little(item.method, 2) +
           std::string(8, '\0') + number(size) + number(size) + little(item.name.size(), 2) + little(extra.size(), 2) +
           std::string(10, '\0') + number(offset) + item.name + extra;
}

/// The last record, behind a directory of so many bytes at `offset`.
inline std::string zip_last(uint64_t num_entries, uint64_t directory_bytes, uint64_t offset,
                            const std::string& comment = "") {
    return std::string("PK\5\6") + std::string(4, '\0') + little(num_entries, 2) + little(num_entries, 2) +
           little(directory_bytes, 4) + little(offset, 4) + little(comment.size(), 2) + comment;
}

/// The same with 64-bit numbers: two more records before it.
inline std::string zip_wide_last(uint64_t num_entries, uint64_t directory_bytes, uint64_t offset,
                                 const std::string& last = zip_last(0xffff, UINT32_MAX, UINT32_MAX)) {
    return "PK\6\6" + little(44, 8) + std::string(12, '\0') + little(num_entries, 8) + little(num_entries, 8) +
           little(directory_bytes, 8) + little(offset, 8) + "PK\6\7" + std::string(4, '\0') +
           little(offset + directory_bytes, 8) + little(1, 4) + last;
}

struct ZipParts {
    std::string entries, directory;
};

inline ZipParts zip_parts(const std::vector<ZipItem>& items) {
    ZipParts parts;
    for (const ZipItem& item : items) {
        parts.directory += zip_listing(item, parts.entries.size());
        parts.entries += zip_local(item);
    }
    return parts;
}

inline std::string zip_file(const std::vector<ZipItem>& items, const std::string& comment = "") {
    const ZipParts parts = zip_parts(items);
    return parts.entries + parts.directory +
           zip_last(items.size(), parts.directory.size(), parts.entries.size(), comment);
}

}  // namespace vpp::test
