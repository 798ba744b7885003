#include "base/file_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.hpp"

namespace vpp {

namespace {

constexpr size_t kMostHolderBytes = 200;  // shown

std::string holder_in(int fd) {
    char text[kMostHolderBytes];
    const ssize_t size = ::pread(fd, text, sizeof text, 0);
    return size > 0 ? printable({text, static_cast<size_t>(size)}) : "another process";
}

}  // namespace

FileLock::FileLock(const std::filesystem::path& path, const std::string& holder) {
    fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd_ < 0) throw Error(ErrorKind::Output, "cannot create " + path.string() + ": " + std::strerror(errno));
    if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
        const std::string other = holder_in(fd_);
        ::close(fd_);
        throw Error(ErrorKind::Output, path.string() + " is held by " + other);
    }
    // Only a message hangs on what is in it.
    [[maybe_unused]] const bool is_written =
        ::ftruncate(fd_, 0) == 0 && ::pwrite(fd_, holder.data(), holder.size(), 0) > 0;
}

FileLock::~FileLock() {
    ::close(fd_);
}

}  // namespace vpp
