// Writing checkpoints. The order of a save, each arrow durable before the next:
//
//   .tmp-step-N-<id>/shard-* fsynced -> manifest fsynced -> folder fsynced
//     -> [step-N => step-N.old] -> .tmp => step-N -> parent fsynced -> [step-N.old => .trash, deleted]
//
// A crash between the two renames leaves step-N.old, which is listed; a crash after them leaves both, the new one
// first.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/run_files.hpp"
#include "checkpoint/checkpoint.hpp"
#include "checkpoint/file_status.hpp"
#include "checkpoint/folder_names.hpp"
#include "checkpoint/manifest.hpp"
#include "checkpoint/safetensors.hpp"

namespace vpp {

namespace fs = std::filesystem;

namespace {

void move_folder(const fs::path& from, const fs::path& to) {
    if (::rename(from.c_str(), to.c_str()) == 0) return;
    throw Error(ErrorKind::Io, "cannot rename " + from.string() + " to " + to.string() + ": " + std::strerror(errno));
}

/// Whether both are there, and no rename leads from one to the other.
bool are_on_two_disks(const fs::path& one, const fs::path& other) {
    struct stat first {
    }, second{};
    return ::stat(one.c_str(), &first) == 0 && ::stat(other.c_str(), &second) == 0 && first.st_dev != second.st_dev;
}

/// Creates a folder and those above it that are missing, so that they survive a crash.
void create_folders(const fs::path& path) {
    std::error_code problem;
    if (fs::is_directory(path, problem)) return;
    const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
    if (parent != path) create_folders(parent);
    if (!fs::create_directory(path, problem) && problem) {
        const ErrorKind kind = kind_of_failed_creation(problem.value());
        const char* remedy = kind == ErrorKind::Output ? "; run.dir must name a folder that can be written" : "";
        throw Error(kind, "cannot create the folder " + path.string() + ": " + problem.message() + remedy);
    }
    sync_folder(parent);
}

void remove_one(const fs::path& path) {
    std::error_code problem;
    fs::remove(path, problem);
    if (problem) throw Error(ErrorKind::Io, "cannot delete " + path.string() + ": " + problem.message());
}

/// Deleting a large file takes time: each one that is gone shows that the disk does it.
void remove_tree(const fs::path& path, const StopHook& stop) {
    const std::vector<std::string> names = is_folder(path) ? names_in_folder(path) : std::vector<std::string>{};
    for (const std::string& name : names) {
        remove_tree(path / name, stop);
        reached(stop, "discard.file_removed");
    }
    remove_one(path);
}

/// What the bytes of a checkpoint bring about; a disk that cannot be read says nothing of them.
bool is_of_bytes(const Error& error) {
    return error.kind() != ErrorKind::Bug && error.kind() != ErrorKind::Io;
}

/// Nothing for a text that is more or less than a number.
std::optional<double> number_in(const std::string& text) {
    char* end = nullptr;
    const double number = std::strtod(text.c_str(), &end);
    const bool is_whole = !text.empty() && end == text.c_str() + text.size();
    return is_whole && !std::isnan(number) ? std::optional(number) : std::nullopt;
}

/// Nothing for a checkpoint without one, or with a manifest that is damaged.
std::optional<double> validation_loss(const fs::path& checkpoint) {
    try {
        const CheckpointReader reader(checkpoint);
        const auto& facts = reader.manifest().state.facts;
        const auto fact = facts.find(kValidationLoss);
        return fact == facts.end() ? std::nullopt : number_in(fact->second);
    } catch (const Error& error) {
        if (!is_of_bytes(error)) throw;
        return std::nullopt;
    }
}

/// The shards that were reported are the files that are there: a rank on another machine may have written elsewhere.
void check_written(const fs::path& temporary, const std::vector<ShardRecord>& shards) {
    std::set<std::string> expected;
    for (const ShardRecord& shard : shards) {
        check(expected.insert(shard.file).second, "every writer reports its own shard");
        const fs::path path = temporary / shard.file;
        status_of(path);  // a disk that does not tell says nothing of what the ranks share
        std::error_code problem;
        const auto size = fs::file_size(path, problem);
        if (problem || size != shard.size_bytes) {
            throw Error(ErrorKind::Output, "the shard " + path.string() + " was written but " +
                                               (problem ? "is not there"
                                                        : "has " + std::to_string(size) + " bytes instead of " +
                                                              std::to_string(shard.size_bytes)) +
                                               "; run.dir must be on storage that all ranks share");
        }
    }
    for (const std::string& name : names_in_folder(temporary)) {
        if (!expected.contains(name)) {
            throw Error(ErrorKind::Output, (temporary / name).string() +
                                               " belongs to no shard of this save; "
                                               "does another job use the same run.dir?");
        }
    }
}

/// Whether it is a checkpoint of that save, whole or a part.
bool is_of_save(const fs::path& checkpoint, const std::string& save_id) {
    try {
        return is_folder(checkpoint) && CheckpointReader(checkpoint).manifest().save_id == save_id;
    } catch (const Error& error) {
        if (!is_of_bytes(error)) throw;
        return false;
    }
}

}  // namespace

std::set<int64_t> best_steps(const std::vector<fs::path>& checkpoints, size_t count) {
    if (count == 0) return {};
    std::vector<std::pair<double, int64_t>> losses;
    for (const fs::path& checkpoint : checkpoints) {
        const auto loss = validation_loss(checkpoint);
        if (loss) losses.emplace_back(*loss, parse_step_folder(checkpoint.filename().string())->step);
    }
    std::sort(losses.begin(), losses.end());
    std::set<int64_t> steps;
    for (size_t i = 0; i < std::min(count, losses.size()); ++i) steps.insert(losses[i].second);
    return steps;
}

CheckpointDamage damage_told_by(const Error& error) {
    if (error.kind() == ErrorKind::Bug) throw error;
    const bool is_unknown = dynamic_cast<const UnknownVersion*>(&error) != nullptr;
    return {error.what(), error.kind(), error.kind() == ErrorKind::Io || is_unknown};
}

void refuse_older(const CheckpointDamage& damage) {
    check(damage.bars_older, "what is damaged bars no older checkpoint");
    throw Error(damage.kind, damage.text + "; no older checkpoint is taken in place of one that may be whole");
}

CheckpointDamage CheckpointStore::damage(const fs::path& checkpoint, bool read_all, const StopHook& stop) {
    const auto name = parse_step_folder(checkpoint.filename().string());
    try {
        const CheckpointReader reader(checkpoint);
        if (name && reader.manifest().state.step != name->step) {
            return {checkpoint.string() + ": holds step " + std::to_string(reader.manifest().state.step)};
        }
        read_all ? reader.verify(stop) : reader.check_files();
        return {};
    } catch (const Error& error) {
        return damage_told_by(error);
    }
}

CheckpointDamage CheckpointStore::damage_of_entry(const fs::path& entry) {
    if (!is_other_than_folder(entry)) return damage(entry);
    const bool is_link = fs::is_symlink(status_of(entry));
    return {entry.string() + (is_link ? ": is a symbolic link, and a checkpoint of a run is a folder in its place; "
                                        "move that folder back here, or the link away"
                                      : ": is not a folder, as a checkpoint is; move it away"),
            ErrorKind::BadData, /*bars_older=*/true};
}

CheckpointStore::CheckpointStore(fs::path run_folder, StopHook stop)
    : folder_(std::move(run_folder) / run_files::kCheckpoints), stop_(std::move(stop)) {}

fs::path CheckpointStore::begin(int64_t step, const std::string& save_id) {
    const fs::path temporary = folder_ / temporary_folder_name(step, save_id);
    create_folders(folder_);
    reached(stop_, "begin.folder_made");
    remove_left_overs();
    create_folders(temporary);
    reached(stop_, "begin.temporary_made");
    return temporary;
}

void CheckpointStore::remove_left_overs(int64_t last_step) {
    for (const std::string& name : names_in_folder(folder_)) {
        const auto checkpoint = parse_step_folder(name);
        const bool is_meant = checkpoint && checkpoint->replaced && checkpoint->step <= last_step;
        if (is_meant && is_folder(folder_ / name)) settle_replaced(checkpoint->step);
    }
    for (const std::string& name : names_in_folder(folder_)) {
        if (!is_left_over(name)) continue;
        remove_tree(folder_ / name, stop_);
        reached(stop_, "begin.left_over_removed");
    }
}

void CheckpointStore::settle_replaced(int64_t step) {
    const fs::path current = folder_ / step_folder_name(step), old = folder_ / replaced_folder_name(step);
    if (!is_there(current)) return restore_replaced(step);
    if (!is_folder(current)) return;  // who put it there may want it
    const CheckpointDamage problem = damage(current, true, stop_);
    if (problem.bars_older) refuse_older(problem);
    if (problem.empty()) {
        sync_folder(folder_);  // the rename that published it may not be durable yet
        discard(old);
        return;
    }
    if (!damage(old, true, stop_).empty()) return;  // they may be parts, of which only all folders together can tell
    discard(current);
    restore_replaced(step);
}

void CheckpointStore::restore_replaced(int64_t step) {
    move_folder(folder_ / replaced_folder_name(step), folder_ / step_folder_name(step));
    reached(stop_, "begin.old_restored");
    sync_folder(folder_);
    reached(stop_, "begin.restore_synced");
}

std::vector<fs::path> CheckpointStore::settle(int64_t step, const std::string& save_id) {
    const fs::path current = folder_ / step_folder_name(step), old = folder_ / replaced_folder_name(step);
    if (is_of_save(current, save_id)) {
        if (is_folder(old)) discard(old);
    } else if (is_of_save(old, save_id)) {
        if (is_folder(current)) discard(current);
        restore_replaced(step);
    } else {
        return set_aside([&](int64_t other) { return other == step; });
    }
    return {};
}

ShardRecord CheckpointStore::write_shard(int64_t step, const std::string& save_id, int writer,
                                         const std::vector<TensorBytes>& tensors) {
    const fs::path temporary = folder_ / temporary_folder_name(step, save_id);
    if (!is_folder(temporary)) {
        throw Error(ErrorKind::Output, "the folder " + temporary.string() +
                                           " cannot be seen from this rank; run.dir must be on storage that all ranks "
                                           "share");
    }
    // "format" is what other tools ask for before they load tensors with PyTorch.
    const std::map<std::string, std::string> metadata{
        {"format", "pt"}, {"save_id", save_id}, {"step", std::to_string(step)}, {"writer", std::to_string(writer)}};
    const std::string file = shard_file_name(writer);
    const WrittenFile written = write_safetensors(temporary / file, tensors, metadata, stop_);
    return {file, written.size_bytes, written.digest};
}

fs::path CheckpointStore::commit(const std::string& save_id, const CheckpointState& state,
                                 std::vector<ShardRecord> shards) {
    std::sort(shards.begin(), shards.end(), [](const ShardRecord& a, const ShardRecord& b) { return a.file < b.file; });
    const Manifest manifest{kManifestVersion, save_id, state, std::move(shards)};
    fs::path target = publish(manifest, manifest.shards);
    confirm(state.step);
    return target;
}

fs::path CheckpointStore::publish(const Manifest& manifest, const std::vector<ShardRecord>& here) {
    const int64_t step = manifest.state.step;
    const fs::path temporary = folder_ / temporary_folder_name(step, manifest.save_id);
    check_written(temporary, here);
    const std::string text = manifest_to_text(manifest);
    OutputFile file(temporary / kManifestFile);
    file.write_text(text);
    reached(stop_, "manifest.written");
    file.finish();
    reached(stop_, "manifest.synced");
    sync_folder(temporary);
    reached(stop_, "commit.temporary_synced");

    const fs::path target = folder_ / step_folder_name(step), old = folder_ / replaced_folder_name(step);
    if (is_folder(target)) {
        move_folder(target, old);
        reached(stop_, "commit.old_set_aside");
    }
    move_folder(temporary, target);
    reached(stop_, "commit.renamed");
    sync_folder(folder_);
    reached(stop_, "commit.synced");
    return target;
}

void CheckpointStore::confirm(int64_t step) {
    last_committed_ = step;
    const fs::path old = folder_ / replaced_folder_name(step);
    if (is_folder(old)) discard(old);
}

void CheckpointStore::withdraw(int64_t step, const std::string& save_id) {
    abandon(step, save_id);
    const fs::path current = folder_ / step_folder_name(step);
    if (is_of_save(current, save_id)) discard(current);
    if (!is_folder(current) && is_folder(folder_ / replaced_folder_name(step))) restore_replaced(step);
}

/// Deletes a checkpoint. The rename comes first and is durable first, so that no half-deleted one keeps its name.
void CheckpointStore::discard(const fs::path& checkpoint) {
    const fs::path trash = folder_ / trash_folder_name(checkpoint.filename().string());
    remove_tree(trash, stop_);
    move_folder(checkpoint, trash);
    reached(stop_, "discard.renamed");
    sync_folder(folder_);
    reached(stop_, "discard.synced");
    remove_tree(trash, stop_);
    reached(stop_, "discard.removed");
}

void CheckpointStore::remove(const fs::path& checkpoint) {
    check(parse_step_folder(checkpoint.filename().string()) && is_folder(folder_ / checkpoint.filename()),
          "only committed checkpoints of this run are deleted");
    discard(folder_ / checkpoint.filename());
}

void CheckpointStore::abandon(int64_t step, const std::string& save_id) noexcept {
    std::error_code ignored;
    fs::remove_all(folder_ / temporary_folder_name(step, save_id), ignored);
}

void CheckpointStore::prune(int keep, int64_t keep_every, int keep_best) {
    check(keep >= 0 && keep_every >= 0 && keep_best >= 0, "the number of checkpoints to keep is not negative");
    if (keep == 0) return;
    const std::set<int64_t> best = best_steps(list(), static_cast<size_t>(keep_best));
    std::set<int64_t> kept;
    for (const fs::path& checkpoint : list()) {
        const int64_t step = parse_step_folder(checkpoint.filename().string())->step;
        if (kept.size() < static_cast<size_t>(keep)) kept.insert(step);
        const bool stays = kept.contains(step) || best.contains(step) || (keep_every > 0 && step % keep_every == 0);
        if (!stays && step != last_committed_) discard(checkpoint);
    }
}

void CheckpointStore::tidy(int keep, int64_t keep_every, int keep_best) {
    remove_left_overs();
    prune(keep, keep_every, keep_best);
}

std::vector<fs::path> CheckpointStore::set_aside_after(int64_t step) {
    return set_aside([&](int64_t other) { return other > step; });
}

std::vector<fs::path> CheckpointStore::set_aside(const std::function<bool(int64_t step)>& is_meant) {
    std::vector<fs::path> moved;
    const fs::path aside = disk() / run_files::kSetAside;
    for (const fs::path& checkpoint : entries()) {
        if (!is_meant(parse_step_folder(checkpoint.filename().string())->step)) continue;
        create_folders(aside);
        fs::path place = aside / checkpoint.filename();
        for (int copy = 2; is_there(place); ++copy) {
            place = aside / (checkpoint.filename().string() + "." + std::to_string(copy));
        }
        move_folder(checkpoint, place);
        moved.push_back(place);
    }
    if (!moved.empty()) {
        sync_folder(aside);
        sync_folder(folder_);
    }
    return moved;
}

fs::path CheckpointStore::disk() const {
    const fs::path run = folder_.parent_path();
    return are_on_two_disks(run, folder_) ? folder_ : run;
}

bool CheckpointStore::is_unfinished(int64_t step, const std::string& save_id) const {
    return is_folder(folder_ / temporary_folder_name(step, save_id));
}

fs::path CheckpointStore::place_of(int64_t step) const {
    return folder_ / step_folder_name(step);
}

std::vector<fs::path> CheckpointStore::list() const {
    std::vector<fs::path> folders = entries();
    std::erase_if(folders, [](const fs::path& entry) { return !is_folder(entry); });
    return folders;
}

std::vector<fs::path> CheckpointStore::entries() const {
    std::vector<std::pair<StepFolder, fs::path>> found;
    for (const std::string& name : names_in_folder(folder_)) {
        const auto checkpoint = parse_step_folder(name);
        if (checkpoint) found.emplace_back(*checkpoint, folder_ / name);
    }
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
        return a.first.step != b.first.step ? a.first.step > b.first.step : a.first.replaced < b.first.replaced;
    });
    std::vector<fs::path> paths;
    for (auto& [name, path] : found) paths.push_back(std::move(path));
    return paths;
}

std::optional<fs::path> CheckpointStore::newest_verified(std::vector<std::string>& skipped) const {
    for (const fs::path& checkpoint : entries()) {
        CheckpointDamage why = damage_of_entry(checkpoint);
        if (why.empty()) return checkpoint;
        if (why.bars_older) refuse_older(why);
        skipped.push_back(std::move(why.text));
    }
    return std::nullopt;
}

}  // namespace vpp
