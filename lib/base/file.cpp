#include "base/file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.hpp"
#include "base/new_file.hpp"

namespace vpp {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void throw_errno(ErrorKind kind, const std::string& what, const fs::path& path) {
    throw Error(kind, what + " " + path.string() + ": " + std::strerror(errno));
}

/// A file descriptor that is closed at the end of its scope.
class Descriptor {
  public:
    explicit Descriptor(int fd) : fd_(fd) {}
    ~Descriptor() {
        if (fd_ >= 0) ::close(fd_);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int get() const { return fd_; }

  private:
    int fd_;
};

int open_for_reading(const fs::path& path, struct stat& info) {
    // O_NONBLOCK: a named pipe would hold the open until somebody writes; files do not care.
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        throw_errno(errno == ENOENT || errno == ENOTDIR ? ErrorKind::MissingInput : ErrorKind::Io, "cannot open", path);
    }
    if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        ::close(fd);
        throw Error(ErrorKind::BadData, path.string() + " is not a regular file");
    }
    return fd;
}

void write_all(int fd, std::span<const std::byte> bytes, const fs::path& path) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(fd, bytes.data(), std::min<size_t>(bytes.size(), size_t{1} << 30));
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) throw_errno(ErrorKind::Io, "cannot write", path);
        bytes = bytes.subspan(static_cast<size_t>(written));
    }
}

}  // namespace

MappedFile::MappedFile(const fs::path& path) : path_(path) {
    struct stat info {};
    const Descriptor fd(open_for_reading(path, info));
    size_ = static_cast<size_t>(info.st_size);
    if (size_ == 0) return;
    void* map = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd.get(), 0);
    if (map == MAP_FAILED) throw_errno(ErrorKind::Io, "cannot map", path);
    data_ = static_cast<const std::byte*>(map);
}

MappedFile::~MappedFile() {
    if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
}

InputFile::InputFile(const fs::path& path) : path_(path) {
    struct stat info {};
    fd_ = open_for_reading(path, info);
    size_bytes_ = static_cast<uint64_t>(info.st_size);
}

InputFile::~InputFile() {
    if (fd_ >= 0) ::close(fd_);
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      size_bytes_(std::exchange(other.size_bytes_, 0)) {}

InputFile& InputFile::operator=(InputFile&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(fd_, other.fd_);
    std::swap(size_bytes_, other.size_bytes_);
    return *this;
}

void InputFile::read(uint64_t offset, std::span<std::byte> out) const {
    while (!out.empty()) {
        const ssize_t got =
            ::pread(fd_, out.data(), std::min<size_t>(out.size(), size_t{1} << 30), static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) throw_errno(ErrorKind::Io, "cannot read", path_);
        if (got == 0) {
            throw Error(ErrorKind::BadData,
                        path_.string() + " ends at byte " + std::to_string(::lseek(fd_, 0, SEEK_END)) + ", but " +
                            std::to_string(out.size()) + " bytes at " + std::to_string(offset) +
                            " are wanted; it had " + std::to_string(size_bytes_) + " bytes when it was opened");
        }
        offset += static_cast<uint64_t>(got);
        out = out.subspan(static_cast<size_t>(got));
    }
}

std::string read_text_file(const fs::path& path, uint64_t limit_bytes) {
    struct stat info {};
    const Descriptor fd(open_for_reading(path, info));
    std::string text;
    char block[1 << 16];
    for (;;) {
        const ssize_t got = ::read(fd.get(), block, sizeof block);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) throw_errno(ErrorKind::Io, "cannot read", path);
        if (got == 0) return text;
        text.append(block, static_cast<size_t>(got));
        if (text.size() > limit_bytes) {
            throw Error(ErrorKind::BadData,
                        path.string() + " is larger than " + std::to_string(limit_bytes) + " bytes");
        }
    }
}

ErrorKind kind_of_failed_creation(int error_number) {
    constexpr std::array kOfThePlace{EACCES, EEXIST, EISDIR, ELOOP, ENAMETOOLONG, ENOENT, ENOTDIR, EPERM};
    return std::ranges::find(kOfThePlace, error_number) != kOfThePlace.end() ? ErrorKind::Output : ErrorKind::Io;
}

OutputFile::OutputFile(const fs::path& path) : path_(path) {
    fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd_ < 0) throw_errno(kind_of_failed_creation(errno), "cannot create", path);
}

OutputFile::~OutputFile() {
    if (fd_ >= 0) ::close(fd_);
}

void OutputFile::write(std::span<const std::byte> bytes) {
    write_all(fd_, bytes, path_);
}

void OutputFile::write_text(std::string_view text) {
    write(std::as_bytes(std::span(text.data(), text.size())));
}

void OutputFile::sync() {
    if (::fsync(fd_) != 0) throw_errno(ErrorKind::Io, "cannot fsync", path_);
}

void OutputFile::finish() {
    sync();
    if (::close(std::exchange(fd_, -1)) != 0) throw_errno(ErrorKind::Io, "cannot close", path_);
}

std::vector<std::string> names_in_folder(const fs::path& folder) {
    std::vector<std::string> names;
    std::error_code problem;
    fs::directory_iterator entry(folder, problem);
    while (!problem && entry != fs::directory_iterator()) {
        names.push_back(entry->path().filename().string());
        entry.increment(problem);
    }
    if (problem && problem != std::errc::no_such_file_or_directory) {
        throw Error(ErrorKind::Io, "cannot list the folder " + folder.string() + ": " + problem.message());
    }
    std::ranges::sort(names);
    return names;
}

void sync_folder(const fs::path& folder) {
    const Descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd.get() < 0) throw_errno(ErrorKind::Io, "cannot open the folder", folder);
    if (::fsync(fd.get()) != 0) throw_errno(ErrorKind::Io, "cannot fsync the folder", folder);
}

void write_file_durably(const fs::path& path, std::string_view text) {
    std::error_code ignored;
    if (fs::is_other(fs::status(path, ignored))) {
        const Descriptor fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
        if (fd.get() < 0) throw_errno(ErrorKind::Output, "cannot open", path);
        return write_all(fd.get(), std::as_bytes(std::span(text.data(), text.size())), path);
    }
    NewFile place(path, /*overwrite=*/true);
    OutputFile file(place.temporary());
    file.write_text(text);
    file.finish();
    place.publish();
}

bool is_plain_name(std::string_view name) {
    if (name.empty() || name == "." || name == ".." || name.size() > 255) return false;
    return std::none_of(name.begin(), name.end(),
                        [](unsigned char c) { return c == '/' || c == '\\' || c < 0x20 || c == 0x7f; });
}

}  // namespace vpp
