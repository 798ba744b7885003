#pragma once
// Whether a run folder can be made and how fast its disk is: a small file is written beside it, synced and removed.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace vpp {

struct DiskFacts {
    std::filesystem::path run_folder;        ///< as the plan says it
    std::filesystem::path folder;            ///< it, or the nearest folder above it that is there
    std::string problem;                     ///< why it cannot be written, or cannot become a folder; empty: it can
    bool is_full = false;                    ///< that is the problem
    std::optional<double> bytes_per_second;  ///< of a write with its fsync
    int64_t free_bytes = 0;
};

/// Tries `bytes` bytes, fewer when they take longer than some two seconds. What it wrote is gone afterwards.
DiskFacts try_disk(const std::filesystem::path& run_folder, int64_t bytes = int64_t{16} << 20);

}  // namespace vpp
