#pragma once
// A run folder is one process's at a time: who writes into it takes its lock first.
#include <filesystem>
#include <memory>

#include "base/file_lock.hpp"

namespace vpp {

/// Takes the lock of a run folder that is there, for as long as the result lives; a lock whose holder has died is free.
/// Throws Error{Output} that names the holder.
std::unique_ptr<FileLock> lock_run_folder(const std::filesystem::path& folder);

}  // namespace vpp
