#include "support/disk_calls.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <mutex>
#include <utility>

namespace vpp::test {

namespace {

namespace fs = std::filesystem;

std::mutex mutex;
std::string watched;  // empty: nothing is noted
std::vector<std::string> calls;

/// From the watched folder on; whether it lies there.
bool shorten(std::string& path) {
    if (watched.empty() || !path.starts_with(watched)) return false;
    path = path == watched ? "." : path.substr(watched.size() + 1);
    return true;
}

void note_fsync(int fd) {
    std::error_code problem;
    std::string path = fs::read_symlink("/proc/self/fd/" + std::to_string(fd), problem).string();
    const std::lock_guard lock(mutex);
    if (shorten(path)) calls.push_back("fsync " + path);
}

void note_rename(std::string from, std::string to) {
    const std::lock_guard lock(mutex);
    if (shorten(from) && shorten(to)) calls.push_back("rename " + from + " to " + to);
}

}  // namespace

DiskCalls::DiskCalls(const fs::path& folder) {
    const std::lock_guard lock(mutex);
    watched = fs::canonical(folder).string();
}

DiskCalls::~DiskCalls() {
    const std::lock_guard lock(mutex);
    watched.clear();
    calls.clear();
}

std::vector<std::string> DiskCalls::take() {
    const std::lock_guard lock(mutex);
    return std::exchange(calls, {});
}

}  // namespace vpp::test

extern "C" {

int fsync(int fd) {
    vpp::test::note_fsync(fd);
    return static_cast<int>(::syscall(SYS_fsync, fd));
}

int rename(const char* from, const char* to) noexcept {
    vpp::test::note_rename(from, to);
    return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0U));
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) noexcept {
    vpp::test::note_rename(from, to);
    return static_cast<int>(::syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
}

}  // extern "C"
