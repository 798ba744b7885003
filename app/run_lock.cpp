#include "app/run_lock.hpp"

#include <unistd.h>

#include "base/error.hpp"

namespace vpp {

namespace {

std::string host_and_pid() {
    char host[256] = "";
    ::gethostname(host, sizeof host - 1);
    return "process " + std::to_string(::getpid()) + " on " + host;
}

}  // namespace

std::unique_ptr<FileLock> lock_run_folder(const std::filesystem::path& folder) {
    try {
        return std::make_unique<FileLock>(folder / ".lock", host_and_pid());
    } catch (const Error& error) {
        throw Error(error.kind(),
                    std::string(error.what()) + "; a run folder is one job's: wait for it, or name another run.dir");
    }
}

}  // namespace vpp
