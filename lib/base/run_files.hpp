#pragma once
// Names in the folder of a run (run.dir), beside those of its metrics (report/sinks.hpp), for who writes them, who
// reads them, and who lets no other output replace them.
#include <array>

namespace vpp::run_files {

inline constexpr const char* kPlan = "plan.toml";
inline constexpr const char* kLog = "log.txt";
inline constexpr const char* kEnd = "end.json";
inline constexpr const char* kMetrics = "metrics.jsonl";
inline constexpr const char* kProfile = "profile";
inline constexpr const char* kTimeline = "timeline.json";  ///< in the profile
inline constexpr const char* kCheckpoints = "checkpoints";
/// What a run has moved out of its way; also among the checkpoints.
inline constexpr const char* kSetAside = "set-aside";

/// Of folders all that is in them.
inline constexpr std::array kAll{kPlan, kLog, kEnd, kMetrics, kProfile, kCheckpoints, kSetAside};

}  // namespace vpp::run_files
