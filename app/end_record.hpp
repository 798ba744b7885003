#pragma once
// What is written into the run folder when a job ends: end.json (report/run_end.hpp), and an error into the log.
#include <filesystem>
#include <mutex>
#include <string>

namespace vpp {

/// Writes nothing until a run folder is known to be this job's. Safe from any thread.
class EndRecord {
  public:
    /// Calls: local; every rank of the job, once the lock of the folder is held.
    void open(std::filesystem::path run_folder);
    /// The first end of any rank counts. Returns within a second: a disk that stands still keeps no job alive.
    void write(int exit_code, const std::string& text) noexcept;

  private:
    std::mutex mutex_;
    std::filesystem::path run_folder_;  ///< empty: none
};

}  // namespace vpp
