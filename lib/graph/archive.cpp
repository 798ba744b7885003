#include "graph/archive.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "base/error.hpp"

namespace vpp {

namespace {

constexpr uint64_t kMaxRecords = 10'000'000;
constexpr uint64_t kMaxCodeBytes = uint64_t{1} << 30;  // a record that is unpacked while reading the directory

[[noreturn]] void damaged(const std::filesystem::path& path, const std::string& what) {
    throw Error(ErrorKind::BadData, path.string() + ": " + what + "; export the model again or copy the file anew");
}

using Zip = std::unique_ptr<zip_t, decltype(&zip_discard)>;

Zip open_zip(const std::filesystem::path& path, std::span<const std::byte> bytes) {
    zip_error_t error;
    zip_error_init(&error);
    zip_source_t* source = zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error);
    zip_t* zip = source ? zip_open_from_source(source, ZIP_RDONLY, &error) : nullptr;
    const std::string reason = zip_error_strerror(&error);
    if (!zip && source) zip_source_free(source);
    zip_error_fini(&error);
    if (!zip) damaged(path, "this is not a TorchScript file (" + reason + ")");
    return Zip(zip, zip_discard);
}

/// Reads a whole entry; the library compares its checksum at the end.
void check_entry(const std::filesystem::path& path, zip_t* zip, zip_uint64_t index, const zip_stat_t& stat) {
    if (stat.size > kMaxCodeBytes) damaged(path, std::string("the record ") + printable(stat.name) + " is too large");
    const std::unique_ptr<zip_file_t, decltype(&zip_fclose)> file(zip_fopen_index(zip, index, 0), zip_fclose);
    std::vector<char> block(1 << 16);
    zip_int64_t got = file ? 1 : -1;
    while (got > 0) got = zip_fread(file.get(), block.data(), block.size());
    if (got < 0) damaged(path, std::string("the record ") + printable(stat.name) + " is damaged");
}

bool is_safe(const std::string& name) {
    return !name.empty() && name.front() != '/' && name.find("..") == std::string::npos && printable(name) == name;
}

}  // namespace

Archive::Archive(const std::filesystem::path& path) : path_(path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        throw Error(errno == ENOENT ? ErrorKind::MissingInput : ErrorKind::Io,
                    "cannot open the model file " + path.string() + ": " + std::strerror(errno));
    }
    struct stat info {};
    const bool regular = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0;
    size_ = regular ? static_cast<size_t>(info.st_size) : 0;
    // Private and writable: tensors over the map may be written by ops without touching the file.
    void* map = regular ? ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    ::close(fd);
    if (map == MAP_FAILED) damaged(path, "this is not a model file that can be mapped");
    data_ = static_cast<std::byte*>(map);
    try {
        read_directory();
    } catch (...) {
        ::munmap(data_, size_);
        throw;
    }
}

Archive::~Archive() {
    ::munmap(data_, size_);
}

void Archive::read_directory() {
    const Zip zip = open_zip(path_, bytes());
    const zip_int64_t count = zip_get_num_entries(zip.get(), 0);
    if (count <= 0 || static_cast<uint64_t>(count) > kMaxRecords)
        damaged(path_, "the archive has no plausible directory");
    std::string top;
    for (zip_int64_t i = 0; i < count; ++i) {
        zip_stat_t stat;
        const auto index = static_cast<zip_uint64_t>(i);
        if (zip_stat_index(zip.get(), index, ZIP_FL_ENC_RAW, &stat) != 0)
            damaged(path_, "the archive's directory is damaged");
        const std::string full = stat.name;
        if (!is_safe(full)) throw Error(ErrorKind::Refused, path_.string() + ": unsafe record name " + printable(full));
        const std::string folder = full.substr(0, full.find('/') + 1);
        if (i == 0) top = folder;
        if (folder != top || top.empty()) damaged(path_, "the archive does not have one top folder");
        const std::string name = full.substr(top.size());
        const ArchiveRecord record{stat.size, stat.crc, stat.comp_method == ZIP_CM_STORE};
        if (!records_.emplace(name, record).second) damaged(path_, "the record " + name + " is there twice");
        if (!name.starts_with("data/")) check_entry(path_, zip.get(), index, stat);
    }
    if (!records_.count("constants.pkl") || !records_.count("data.pkl")) {
        damaged(path_, "this is a zip file but not a TorchScript one; save it with torch.jit.save");
    }
}

void Archive::check_stored(const std::string& name, uint64_t offset) const {
    const auto found = records_.find(name);
    if (found == records_.end() || !found->second.stored) damaged(path_, "there is no plain record " + name);
    const uint64_t num_bytes = found->second.size_bytes;
    if (offset > size_ || num_bytes > size_ - offset) damaged(path_, "the record " + name + " ends behind the file");
    const auto* begin = reinterpret_cast<const Bytef*>(data_ + offset);
    if (crc32_z(crc32_z(0, nullptr, 0), begin, num_bytes) != found->second.crc) {
        damaged(path_, "the record " + name + " is damaged (its checksum differs)");
    }
}

}  // namespace vpp
