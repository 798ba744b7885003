#include "launch/disk_trial.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <vector>

#include "base/elapsed.hpp"

namespace vpp {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kPiece = 1 << 20;
constexpr std::chrono::seconds kDiskTrialLimit{2};

/// A file without a name that is gone when it is closed; with one where the file system knows no such files.
int open_unseen(const fs::path& folder) {
    const int unnamed = ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (unnamed >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return unnamed;
    std::string name = (folder / ".vpp-doctor-XXXXXX").string();
    const int fd = ::mkostemp(name.data(), O_CLOEXEC);
    if (fd >= 0) ::unlink(name.c_str());
    return fd;
}

/// Bytes that reached the disk; fewer than asked for when time is up. -1 with errno when a write fails.
int64_t write_synced(int fd, int64_t bytes) {
    std::vector<char> piece(static_cast<size_t>(std::min(bytes, kPiece)));
    for (size_t i = 0; i < piece.size(); ++i) piece[i] = static_cast<char>(i * 2654435761U >> 13);  // does not compress
    const Clock::time_point end = Clock::now() + kDiskTrialLimit;
    int64_t written = 0;
    while (written < bytes && Clock::now() < end) {
        const ssize_t done = ::write(fd, piece.data(), piece.size());
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return -1;
        written += done;
    }
    return ::fsync(fd) == 0 ? written : -1;
}

}  // namespace

DiskFacts try_disk(const fs::path& run_folder, int64_t bytes) {
    DiskFacts facts;
    facts.run_folder = run_folder;
    std::error_code error;
    facts.folder = fs::absolute(run_folder).lexically_normal();
    // A link to nothing is there too, and no folder can be made in its place.
    while (!fs::exists(fs::symlink_status(facts.folder, error)) && facts.folder.has_relative_path()) {
        facts.folder = facts.folder.parent_path();
    }
    if (!fs::is_directory(facts.folder, error)) {
        facts.problem = facts.folder.string() + " is no folder";
        return facts;
    }
    const fs::space_info space = fs::space(facts.folder, error);
    if (!error) facts.free_bytes = static_cast<int64_t>(std::min<uintmax_t>(space.available, INT64_MAX));
    const int fd = open_unseen(facts.folder);
    const Clock::time_point start = Clock::now();
    const int64_t written = fd < 0 ? -1 : write_synced(fd, bytes);
    const std::chrono::duration<double> time = Clock::now() - start;
    if (written < 0) {
        facts.is_full = errno == ENOSPC || errno == EDQUOT;
        facts.problem = facts.folder.string() + ": " + std::strerror(errno);
    } else {
        facts.bytes_per_second = static_cast<double>(written) / std::max(time.count(), 1e-6);
    }
    if (fd >= 0) ::close(fd);
    return facts;
}

}  // namespace vpp
