#pragma once
// A folder or other thing of which one process at a time may be the user, by a lock file beside it.
#include <filesystem>
#include <string>

namespace vpp {

/// Holds the lock as long as it lives. The kernel gives it up when the process ends in whatever way, so there are no
/// stale locks; the file stays and means nothing by itself.
class FileLock {
  public:
    /// `holder` is written into the file, where it is not empty; its first line is for the message of whoever comes
    /// second.
    /// Throws Error{Output} naming the holder when another process has the lock, or when the file cannot be made or
    /// locked.
    FileLock(const std::filesystem::path& path, const std::string& holder);
    ~FileLock();
    FileLock(const FileLock&) = delete;
    FileLock& operator=(const FileLock&) = delete;

  private:
    int fd_ = -1;
};

/// Whether a process has the lock. Who asks for it in that moment may be told so too: it is taken for the look.
bool is_held(const std::filesystem::path& path);

/// What the last holder has written, up to 200 bytes, whether it still has the lock or not; empty: there was none.
std::string last_holder(const std::filesystem::path& path);

}  // namespace vpp
