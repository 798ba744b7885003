#pragma once
// How far a run has come, as its folder tells it: for whoever starts it again.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>

namespace vpp {

struct RunProgress {
    std::optional<int64_t> step;        ///< the last one of metrics.jsonl
    std::optional<int64_t> checkpoint;  ///< the step of the newest checkpoint; not verified
    uint64_t metrics_bytes = 0;         ///< of metrics.jsonl
    bool operator==(const RunProgress&) const = default;

    /// The newest step that either of them knows; -1: none.
    int64_t newest() const { return std::max(step.value_or(-1), checkpoint.value_or(-1)); }
    /// Whether nothing is lost when the job ends here.
    bool is_saved() const { return step.value_or(-1) <= checkpoint.value_or(-1) || !step; }
};

/// Looks at a run folder; one that is not there has come nowhere. Damaged lines are passed over.
RunProgress look_at_progress(const std::filesystem::path& run);

}  // namespace vpp
