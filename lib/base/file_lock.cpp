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
    return size > 0 ? std::string(text, static_cast<size_t>(size)) : "";
}

std::string shown(const std::string& holder) {
    return holder.empty() ? "another process" : printable(holder.substr(0, holder.find('\n')));
}

/// Gives: 0, or errno.
int try_lock(int fd) {
    while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EINTR) return errno;
    }
    return 0;
}

}  // namespace

FileLock::FileLock(const std::filesystem::path& path, const std::string& holder) {
    fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd_ < 0) throw Error(ErrorKind::Output, "cannot create " + path.string() + ": " + std::strerror(errno));
    if (const int problem = try_lock(fd_); problem != 0) {
        const std::string other = holder_in(fd_);
        ::close(fd_);
        if (problem == EWOULDBLOCK) throw Error(ErrorKind::Output, path.string() + " is held by " + shown(other));
        throw Error(ErrorKind::Output, "cannot lock " + path.string() + ": " + std::strerror(problem) +
                                           "; use a disk whose file system has locks (flock)");
    }
    if (holder.empty()) return;
    // Only a message hangs on what is in it.
    [[maybe_unused]] const bool is_written =
        ::ftruncate(fd_, 0) == 0 && ::pwrite(fd_, holder.data(), holder.size(), 0) > 0;
}

FileLock::~FileLock() {
    ::close(fd_);
}

bool is_held(const std::filesystem::path& path) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);  // NFS locks nothing that is open to read
    if (fd < 0) return false;
    const bool held = try_lock(fd) == EWOULDBLOCK;
    ::close(fd);
    return held;
}

std::string last_holder(const std::filesystem::path& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return "";
    const std::string holder = holder_in(fd);
    ::close(fd);
    return holder;
}

}  // namespace vpp
