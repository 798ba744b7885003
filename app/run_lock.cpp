#include "app/run_lock.hpp"

#include <unistd.h>

#include <algorithm>

#include "app/environment.hpp"
#include "base/error.hpp"
#include "base/process.hpp"
#include "base/run_files.hpp"

namespace vpp {

namespace fs = std::filesystem;

namespace {

constexpr const char* kLock = ".lock";

/// For messages; and the job of `vpp run`, which finds itself by it.
std::string own_name() {
    return "process " + std::to_string(::getpid()) + " on " + host_name() + "\n" + job_of_run();
}

/// Of a run folder: its own, and that of its checkpoints where others may come to them by another way.
std::vector<fs::path> lock_files(const fs::path& folder) {
    const fs::path checkpoints = folder / run_files::kCheckpoints;
    std::error_code ignored;
    const bool is_behind_link = fs::is_symlink(checkpoints, ignored) && fs::is_directory(checkpoints, ignored);
    std::vector<fs::path> files{folder / kLock};
    if (is_behind_link || fs::exists(checkpoints / kLock, ignored)) files.push_back(checkpoints / kLock);
    return files;
}

RunLock take_locks(const std::vector<fs::path>& files, const std::string& holder) {
    try {
        RunLock lock;
        for (const fs::path& file : files) lock.push_back(std::make_unique<FileLock>(file, holder));
        return lock;
    } catch (const Error& error) {
        if (std::ranges::none_of(files, is_held)) throw;
        throw Error(error.kind(),
                    std::string(error.what()) + "; a run folder is one job's: wait for it, or name another run.dir");
    }
}

}  // namespace

RunLock lock_run_folder(const fs::path& folder) {
    return take_locks(lock_files(folder), own_name());
}

void check_run_folder_is_free(const fs::path& folder) {
    std::vector<fs::path> files = lock_files(folder);
    std::erase_if(files, [](const fs::path& file) {
        std::error_code ignored;
        return !fs::exists(file, ignored);
    });
    take_locks(files, "");
}

bool was_last_held_by(const std::string& job, const fs::path& folder) {
    return !job.empty() && last_holder(folder / kLock).ends_with("\n" + job);
}

bool is_held_by(const std::string& job, const fs::path& folder) {
    return was_last_held_by(job, folder) && is_held(folder / kLock);
}

}  // namespace vpp
