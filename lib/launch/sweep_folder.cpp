#include "launch/sweep_folder.hpp"

#include <algorithm>
#include <system_error>

#include "base/run_files.hpp"
#include "report/run_record.hpp"
#include "report/run_summary.hpp"

namespace vpp {

namespace {

bool is_length(const Difference& one) {
    return one.key == "train.steps" || one.key == "train.epochs";
}

/// Keys that say nothing of what is trained.
bool is_beside(const Difference& one) {
    return one.key.starts_with("run.") || one.key.starts_with("checkpoint.") || one.key.starts_with("report.");
}

std::string shown(const std::optional<std::string>& value) {
    return value.value_or("nothing");
}

}  // namespace

SweepFolder look_at_sweep_folder(const std::filesystem::path& folder, const Settings& wanted) {
    std::error_code ignored;
    if (!std::filesystem::exists(folder / run_files::kMetrics, ignored)) return {SweepProgress::Fresh, ""};
    const RecordedRun run = read_run(folder);
    if (run.settings.empty()) return {SweepProgress::Begun, ""};
    std::vector<Difference> found = differences({run.settings, wanted});
    std::erase_if(found, is_beside);
    const bool has_other_length = std::erase_if(found, is_length) > 0;
    if (!found.empty()) {
        const Difference& first = found.front();
        return {SweepProgress::Other, first.key + " = " + shown(first.values[0]) + ", here " + shown(first.values[1])};
    }
    const bool is_finished = !has_other_length && summary_of(run).is_finished;
    return {is_finished ? SweepProgress::Finished : SweepProgress::Begun, ""};
}

}  // namespace vpp
