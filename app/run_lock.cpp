#include "app/run_lock.hpp"

#include <unistd.h>

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

}  // namespace

RunLock lock_run_folder(const fs::path& folder) {
    const fs::path checkpoints = folder / run_files::kCheckpoints;
    std::error_code ignored;
    const bool is_behind_link = fs::is_symlink(checkpoints, ignored) && fs::is_directory(checkpoints, ignored);
    try {
        RunLock lock;
        lock.push_back(std::make_unique<FileLock>(folder / kLock, own_name()));
        if (is_behind_link || fs::exists(checkpoints / kLock, ignored)) {
            lock.push_back(std::make_unique<FileLock>(checkpoints / kLock, own_name()));
        }
        return lock;
    } catch (const Error& error) {
        throw Error(error.kind(),
                    std::string(error.what()) + "; a run folder is one job's: wait for it, or name another run.dir");
    }
}

bool was_last_held_by(const std::string& job, const fs::path& folder) {
    return !job.empty() && last_holder(folder / kLock).ends_with("\n" + job);
}

bool is_held_by(const std::string& job, const fs::path& folder) {
    return was_last_held_by(job, folder) && is_held(folder / kLock);
}

}  // namespace vpp
