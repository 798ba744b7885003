#include "checkpoint/survey.hpp"

#include <chrono>
#include <system_error>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/run_files.hpp"
#include "checkpoint/file_status.hpp"
#include "checkpoint/folder_names.hpp"

namespace vpp {

namespace fs = std::filesystem;

namespace {

bool leads_to_folder(const fs::path& path) {
    std::error_code problem;
    return fs::is_directory(path, problem);
}

int64_t step_of(const fs::path& checkpoint) {
    return parse_step_folder(checkpoint.filename().string())->step;
}

/// Without a separator at the end, so that it has a file name; what is named "." for what it holds keeps that name.
fs::path plain(const fs::path& path) {
    const fs::path normal = path.lexically_normal();
    const fs::path named = normal.has_filename() ? normal : normal.parent_path();
    const bool has_name = named != "." && named.filename() != "..";
    return has_name || leads_to_folder(named / run_files::kCheckpoints) ? named : plain(fs::absolute(named));
}

/// The folder around it.
fs::path parent_of(const fs::path& path) {
    return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

/// By name; none when the folder is not there.
std::vector<fs::path> entries_of(const fs::path& folder) {
    std::vector<fs::path> entries;
    for (const std::string& name : names_in_folder(folder)) entries.push_back(folder / name);
    return entries;
}

double age_of(const fs::path& folder) {
    std::error_code problem;
    auto time = fs::last_write_time(folder / kManifestFile, problem);
    if (problem) time = fs::last_write_time(folder, problem);
    if (problem) return 0;
    return std::chrono::duration<double>(fs::file_time_type::clock::now() - time).count();
}

}  // namespace

uint64_t size_of_folder(const fs::path& folder) {
    uint64_t size_bytes = 0;
    for (const fs::path& entry : entries_of(folder)) {
        std::error_code problem;
        if (!fs::is_regular_file(fs::symlink_status(entry, problem))) continue;
        const uintmax_t size = fs::file_size(entry, problem);
        if (!problem) size_bytes += size;
    }
    return size_bytes;
}

uint64_t size_of_checkpoints(const fs::path& run) {
    uint64_t size_bytes = 0;
    for (const fs::path& entry : entries_of(run / run_files::kCheckpoints)) {
        if (is_folder(entry)) size_bytes += size_of_folder(entry);
    }
    return size_bytes;
}

CheckpointPlace find_checkpoints(const fs::path& path) {
    const fs::path folder = plain(path);
    if (!leads_to_folder(folder)) {
        throw Error(ErrorKind::MissingInput,
                    folder.string() + " is not there; name a plan, a run folder or a checkpoint's folder");
    }
    if (is_there(folder / kManifestFile) || parse_step_folder(folder.filename().string())) {
        const bool in_run = folder.parent_path().filename() == run_files::kCheckpoints;
        return {in_run ? parent_of(folder.parent_path()) : fs::path(), folder};
    }
    if (folder.filename() == run_files::kCheckpoints) return {parent_of(folder), {}};
    if (leads_to_folder(folder / run_files::kCheckpoints)) return {folder, {}};
    throw Error(ErrorKind::MissingInput, folder.string() + " has no folder '" + run_files::kCheckpoints + "' and no " +
                                             std::string(kManifestFile) +
                                             "; name a plan, a run folder or a checkpoint's folder");
}

CheckpointSummary look_at_checkpoint(const fs::path& folder, bool read_all) {
    CheckpointSummary summary;
    summary.folder = folder;
    summary.size_bytes = size_of_folder(folder);
    summary.age_seconds = age_of(folder);
    summary.damage = CheckpointStore::damage(folder, read_all);
    try {
        const CheckpointReader reader(folder);
        summary.manifest = reader.manifest();
        summary.step = summary.manifest->state.step;
        summary.is_part = reader.lacks_shards();
    } catch (const Error& error) {
        if (summary.damage.empty()) summary.damage = damage_told_by(error);
    }
    if (const auto name = parse_step_folder(folder.filename().string())) summary.step = name->step;
    return summary;
}

CheckpointSummary look_at_entry(const fs::path& entry, bool read_all) {
    if (!is_other_than_folder(entry)) return look_at_checkpoint(entry, read_all);
    CheckpointSummary summary;
    summary.folder = entry;
    summary.step = step_of(entry);
    summary.damage = CheckpointStore::damage_of_entry(entry);
    return summary;
}

RunSurvey survey_run(const fs::path& run, bool read_all) {
    RunSurvey survey;
    bool is_found = false;
    for (const fs::path& entry : CheckpointStore(run).entries()) {
        survey.checkpoints.push_back(look_at_entry(entry, read_all));
        const CheckpointDamage& damage = survey.checkpoints.back().damage;
        if (!is_found && damage.empty()) survey.resumed = survey.checkpoints.size() - 1;
        is_found = is_found || damage.empty() || damage.bars_older;
    }
    const fs::path checkpoints = run / run_files::kCheckpoints;
    for (const fs::path& entry : entries_of(checkpoints)) {
        if (is_left_over(entry.filename().string())) survey.left_overs.push_back(entry);
    }
    survey.set_aside = entries_of(run / run_files::kSetAside);
    for (const fs::path& entry : entries_of(checkpoints / run_files::kSetAside)) survey.set_aside.push_back(entry);
    return survey;
}

PrunePlan plan_prune(const CheckpointStore& store, int keep, int64_t keep_every, int keep_best) {
    check(keep >= 1 && keep_every >= 0 && keep_best >= 0, "at least one checkpoint is kept");
    PrunePlan plan;
    std::vector<fs::path> whole;
    for (const fs::path& folder : store.entries()) {
        CheckpointDamage damage = CheckpointStore::damage_of_entry(folder);
        if (!damage.empty()) {
            plan.damaged.push_back(std::move(damage.text));
        } else if (!whole.empty() && step_of(whole.back()) == step_of(folder)) {
            plan.deleted.push_back(folder);  // was to be replaced by the one before it
        } else {
            whole.push_back(folder);
        }
    }
    const std::set<int64_t> best = best_steps(whole, static_cast<size_t>(keep_best));
    plan.num_best = best.size();
    for (const fs::path& folder : whole) {
        const int64_t step = step_of(folder);
        const bool is_new = plan.kept.size() < static_cast<size_t>(keep);
        const bool stays = is_new || best.contains(step) || (keep_every > 0 && step % keep_every == 0);
        (stays ? plan.kept : plan.deleted).push_back(folder);
    }
    return plan;
}

}  // namespace vpp
