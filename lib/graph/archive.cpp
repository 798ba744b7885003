#include "graph/archive.hpp"

#include <fcntl.h>
#include <openssl/evp.h>
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
constexpr uint64_t kMaxUnpackedBytes = uint64_t{1} << 28;  // all compressed records together: code of any real model

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

/// Reads a whole entry; the library compares its checksum at the end. The contents are given back when wanted.
std::string check_entry(const std::filesystem::path& path, zip_t* zip, zip_uint64_t index, const zip_stat_t& stat,
                        bool wanted) {
    const std::unique_ptr<zip_file_t, decltype(&zip_fclose)> file(zip_fopen_index(zip, index, 0), zip_fclose);
    std::vector<char> block(1 << 16);
    std::string contents;
    uint64_t num_bytes = 0;
    zip_int64_t got = file ? 1 : -1;
    while (got > 0) {
        got = zip_fread(file.get(), block.data(), block.size());
        if (got > 0) num_bytes += static_cast<uint64_t>(got);
        if (got > 0 && wanted) contents.append(block.data(), static_cast<size_t>(got));
    }
    if (got < 0 || num_bytes != stat.size)
        damaged(path, std::string("the record ") + printable(stat.name) + " is damaged");
    return contents;
}

bool is_link(zip_t* zip, zip_uint64_t index) {
    zip_uint8_t system = 0;
    zip_uint32_t attributes = 0;
    if (zip_file_get_external_attributes(zip, index, 0, &system, &attributes) != 0) return false;
    return system == ZIP_OPSYS_UNIX && S_ISLNK(attributes >> 16);
}

bool is_program(const std::string& name) {
    return (name.starts_with("code/") && name.ends_with(".py")) || name.ends_with(".pkl");
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
    uint64_t stored_bytes = 0, unpacked_bytes = 0;
    for (zip_int64_t i = 0; i < count; ++i) {
        zip_stat_t stat;
        const auto index = static_cast<zip_uint64_t>(i);
        if (zip_stat_index(zip.get(), index, ZIP_FL_ENC_RAW, &stat) != 0)
            damaged(path_, "the archive's directory is damaged");
        const std::string full = stat.name;
        if (!is_safe(full)) throw Error(ErrorKind::Refused, path_.string() + ": unsafe record name " + printable(full));
        if (is_link(zip.get(), index))
            throw Error(ErrorKind::Refused, path_.string() + ": the record " + full + " is a symbolic link");
        const std::string folder = full.substr(0, full.find('/') + 1);
        if (i == 0) top = folder;
        if (folder != top || top.empty()) damaged(path_, "the archive does not have one top folder");
        const std::string name = full.substr(top.size());
        const ArchiveRecord record{stat.size, stat.crc, stat.comp_method == ZIP_CM_STORE};
        if (!records_.emplace(name, record).second) damaged(path_, "the record " + name + " is there twice");
        // Entries that share bytes, or unpack to far more than they are, hold up whoever reads them.
        uint64_t& sum = record.stored ? stored_bytes : unpacked_bytes;
        const uint64_t limit = record.stored ? size_ : kMaxUnpackedBytes;
        if (record.size_bytes > limit - sum) damaged(path_, "the records are larger together than the file can hold");
        sum += record.size_bytes;
        if (name.starts_with("data/")) continue;
        std::string contents = check_entry(path_, zip.get(), index, stat, is_program(name));
        if (is_program(name)) program_.emplace(name, std::move(contents));
    }
    if (!records_.count("constants.pkl") || !records_.count("data.pkl")) {
        damaged(path_,
                "this is a zip file but not a TorchScript one (what torch.save and torch.export write has no code "
                "that runs without Python); save it with torch.jit.script(model).save(FILE)");
    }
    if (records_.count("model.json")) damaged(path_, "this TorchScript file has the format of before 2020");
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

void Archive::forget(uint64_t offset, uint64_t num_bytes) const {
    check(offset <= size_ && num_bytes <= size_ - offset, "bytes that are forgotten are bytes of the file");
    const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    const uint64_t begin = (offset + page - 1) / page * page, end = (offset + num_bytes) / page * page;
    // Advice: what the system keeps costs memory and nothing else.
    if (begin < end) ::madvise(data_ + begin, end - begin, MADV_DONTNEED);
}

std::string Archive::sha256() const {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int num_bytes = 0;
    check(EVP_Digest(data_, size_, digest, &num_bytes, EVP_sha256(), nullptr) == 1, "SHA-256 works");
    std::string text;
    for (unsigned int i = 0; i < num_bytes; ++i) {
        constexpr const char* kDigits = "0123456789abcdef";
        text += kDigits[digest[i] >> 4];
        text += kDigits[digest[i] & 15];
    }
    return text;
}

}  // namespace vpp
