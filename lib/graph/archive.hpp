#pragma once
// The zip archive of a model file: mapped, its directory checked, checksums compared when a record is used. LibTorch
// never compares them, so this is where damage is found.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>

namespace vpp {

struct ArchiveRecord {
    uint64_t size_bytes = 0;
    uint32_t crc = 0;
    bool stored = false;  ///< not compressed
};

class Archive {
  public:
    /// Maps the file copy-on-write and reads its directory; records other than weights are compared with their
    /// checksums at once. Throws Error{MissingInput, BadData}: not a zip, duplicate names, damage, records that unpack
    /// to far more than the file; Error{Refused}: names that lead out of the archive, symbolic links.
    explicit Archive(const std::filesystem::path& path);
    ~Archive();
    Archive(const Archive&) = delete;
    Archive& operator=(const Archive&) = delete;

    const std::filesystem::path& path() const { return path_; }
    std::span<std::byte> bytes() const { return {data_, size_}; }
    /// Records by name without the archive's own top folder: "data/0", "constants.pkl", "code/...".
    const std::map<std::string, ArchiveRecord>& records() const { return records_; }
    /// The contents of the records that say what runs: code ("code/....py") and pickles ("....pkl").
    const std::map<std::string, std::string>& program() const { return program_; }
    /// SHA-256 of the whole file, 64 lower-case hexadecimal digits: what sha256sum prints.
    std::string sha256() const;
    /// Compares stored bytes at `offset` with the record's checksum. Throws Error{BadData}.
    void check_stored(const std::string& name, uint64_t offset) const;
    /// Gives the memory of whole pages among these bytes back to the system: whoever looks at them again finds what the
    /// file holds, without what was written to the map.
    void forget(uint64_t offset, uint64_t num_bytes) const;

  private:
    void read_directory();

    std::filesystem::path path_;
    std::byte* data_ = nullptr;
    size_t size_ = 0;
    std::map<std::string, ArchiveRecord> records_;
    std::map<std::string, std::string> program_;
};

}  // namespace vpp
