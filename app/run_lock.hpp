#pragma once
// A run folder is one process's at a time: who writes into it takes its lock first.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/file_lock.hpp"

namespace vpp {

/// Where the checkpoints are behind a link, others may come to them by another way: then they have a lock too.
using RunLock = std::vector<std::unique_ptr<FileLock>>;

/// Takes the lock of a run folder that is there, for as long as the result lives; a lock whose holder has died is free.
/// Throws Error{Output} that names the holder.
RunLock lock_run_folder(const std::filesystem::path& folder);

/// Throws what lock_run_folder would, but makes and changes no file.
void check_run_folder_is_free(const std::filesystem::path& folder);

/// Whether the last process that held the folder's lock was one of this job of `vpp run` (job_of_run).
bool was_last_held_by(const std::string& job, const std::filesystem::path& folder);
/// Whether it holds it still.
bool is_held_by(const std::string& job, const std::filesystem::path& folder);

}  // namespace vpp
