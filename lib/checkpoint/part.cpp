#include "checkpoint/part.hpp"

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/units.hpp"
#include "checkpoint/file_status.hpp"
#include "checkpoint/folder_names.hpp"
#include "checkpoint/manifest.hpp"

namespace vpp {

namespace fs = std::filesystem;

namespace {

void rename_durably(const fs::path& from, const fs::path& to) {
    if (::rename(from.c_str(), to.c_str()) != 0) {
        throw Error(ErrorKind::Io,
                    "cannot rename " + from.string() + " to " + to.string() + ": " + std::strerror(errno));
    }
    sync_folder(to.parent_path());
}

/// Beside the checkpoint, where the next save deletes what is left of it.
fs::path temporary_beside(const fs::path& folder, const std::string& name) {
    return folder.parent_path() / (".tmp-" + folder.filename().string() + "-" + name);
}

/// What the name alone tells.
CheckpointPart part_by_name(const fs::path& folder) {
    CheckpointPart part;
    part.folder = folder;
    if (const auto name = parse_step_folder(folder.filename().string())) {
        part.step = name->step;
        part.replaced = name->replaced;
    }
    return part;
}

CheckpointPart look_at_entry_as_part(const fs::path& entry) {
    if (!is_other_than_folder(entry)) return look_at_part(entry);
    CheckpointPart part = part_by_name(entry);
    part.damage = CheckpointStore::damage_of_entry(entry);
    return part;
}

}  // namespace

CheckpointPart look_at_part(const fs::path& folder) {
    CheckpointPart part = part_by_name(folder);
    const auto name = parse_step_folder(folder.filename().string());
    try {
        Manifest manifest = CheckpointReader(folder).manifest();
        if (name && manifest.state.step != name->step) {
            part.damage.text = folder.string() + ": holds step " + std::to_string(manifest.state.step);
            return part;
        }
        part.step = manifest.state.step;
        part.manifest = std::move(manifest);
    } catch (const Error& error) {
        part.damage = damage_told_by(error);
    }
    return part;
}

std::vector<CheckpointPart> parts_of_run(const CheckpointStore& store) {
    std::vector<CheckpointPart> parts;
    for (const fs::path& entry : store.entries()) parts.push_back(look_at_entry_as_part(entry));
    return parts;
}

void write_part(const fs::path& folder, const Manifest& manifest) {
    if (is_there(folder)) {
        throw Error(ErrorKind::BadData, folder.string() + " is in the way of the checkpoint of step " +
                                            std::to_string(manifest.state.step) +
                                            " that other hosts of the job hold; move it away");
    }
    const fs::path temporary = temporary_beside(folder, manifest.save_id);
    std::error_code problem;
    fs::remove_all(temporary, problem);
    fs::create_directories(temporary, problem);
    if (problem) {
        throw Error(kind_of_failed_creation(problem.value()),
                    "cannot create the folder " + temporary.string() + ": " + problem.message());
    }
    OutputFile file(temporary / kManifestFile);
    file.write_text(manifest_to_text(manifest));
    file.finish();
    sync_folder(temporary);
    rename_durably(temporary, folder);
}

ArrivingShard::ArrivingShard(fs::path folder, ShardRecord shard)
    : folder_(std::move(folder)), temporary_(temporary_beside(folder_, shard.file)), shard_(std::move(shard)) {
    check(is_plain_name(shard_.file), "a manifest names plain files");
    std::error_code problem;
    const fs::space_info space = fs::space(folder_, problem);
    if (!problem && space.available < shard_.size_bytes) {
        throw Error(ErrorKind::Io, "there is no room for " + (folder_ / shard_.file).string() + ": it takes " +
                                       bytes_text(static_cast<int64_t>(shard_.size_bytes)) + ", and " +
                                       bytes_text(static_cast<int64_t>(space.available)) + " are free");
    }
    file_.emplace(temporary_);
}

ArrivingShard::~ArrivingShard() {
    if (!file_) return;
    std::error_code ignored;
    fs::remove(temporary_, ignored);
}

void ArrivingShard::add(std::span<const std::byte> bytes) {
    size_bytes_ += bytes.size();
    if (size_bytes_ > shard_.size_bytes) {
        throw Error(ErrorKind::BadData, (folder_ / shard_.file).string() +
                                            ": more bytes arrived than the manifest has (" +
                                            std::to_string(shard_.size_bytes) + ")");
    }
    hasher_.add(bytes);
    file_->write(bytes);
}

void ArrivingShard::finish() {
    const Digest digest = hasher_.digest();
    if (size_bytes_ != shard_.size_bytes || digest != shard_.digest) {
        throw Error(ErrorKind::BadData, (folder_ / shard_.file).string() +
                                            ": arrived damaged: " + std::to_string(size_bytes_) +
                                            " bytes with the checksum " + to_hex(digest) + ", the manifest has " +
                                            std::to_string(shard_.size_bytes) + " with " + to_hex(shard_.digest));
    }
    file_->finish();
    rename_durably(temporary_, folder_ / shard_.file);
    file_.reset();
}

}  // namespace vpp
