#include <algorithm>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "base/bad_data.hpp"
#include "base/bytes.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/suggest.hpp"
#include "checkpoint/checkpoint.hpp"
#include "checkpoint/file_status.hpp"
#include "checkpoint/folder_names.hpp"
#include "checkpoint/manifest.hpp"
#include "checkpoint/safetensors.hpp"

namespace vpp {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t kVerifiedAtOnce = uint64_t{4} << 20;

[[noreturn]] void refuse_checkpoint(const fs::path& path, const std::string& what) {
    refuse_data(path.string(), what);
}

/// A file of a checkpoint is a plain file: a link could lead anywhere, and opening a pipe would wait for ever.
void check_plain_file(const fs::path& path) {
    const fs::file_status status = status_of(path);
    if (status.type() == fs::file_type::not_found) refuse_checkpoint(path, "is missing");
    if (fs::is_symlink(status)) {
        throw Error(ErrorKind::Refused, path.string() + " is a symbolic link; a checkpoint holds plain files only");
    }
    if (!fs::is_regular_file(status)) refuse_checkpoint(path, "is not a plain file");
}

void check_size(const fs::path& path, uint64_t size, const ShardRecord& shard) {
    if (size == shard.size_bytes) return;
    refuse_checkpoint(path, (size < shard.size_bytes ? "cut off at byte " : "grown to ") + std::to_string(size) +
                                " (expected " + std::to_string(shard.size_bytes) + " bytes)");
}

Manifest read_manifest(const fs::path& folder) {
    const fs::path path = folder / kManifestFile;
    if (!is_there(path)) {
        throw Error(ErrorKind::MissingInput, folder.string() + " is not a checkpoint: it has no " +
                                                 std::string(kManifestFile) +
                                                 "; name a folder like checkpoints/step-00000050");
    }
    check_plain_file(path);
    return manifest_from_text(read_text_file(path, kMaxManifestBytes), path.string());
}

/// Nothing but the manifest and its shards lies in the folder.
void check_file_list(const fs::path& folder, const Manifest& manifest) {
    const std::vector<std::string> names = names_in_folder(folder);
    if (names.empty()) throw Error(ErrorKind::Io, "the folder " + folder.string() + " went away while it was read");
    for (const std::string& name : names) {
        const bool listed = name == kManifestFile || std::any_of(manifest.shards.begin(), manifest.shards.end(),
                                                                 [&](const ShardRecord& s) { return s.file == name; });
        if (!listed) refuse_checkpoint(folder / printable(name), "is not in the manifest's list of files");
    }
}

std::vector<std::string> missing_shards(const fs::path& folder, const Manifest& manifest) {
    std::vector<std::string> missing;
    for (const ShardRecord& shard : manifest.shards) {
        if (!is_there(folder / shard.file)) missing.push_back(shard.file);
    }
    return missing;
}

/// Strict: every shard of the manifest is in the folder.
void check_all_there(const fs::path& folder, const Manifest& manifest) {
    const std::vector<std::string> missing = missing_shards(folder, manifest);
    if (missing.empty()) return;
    const size_t num_shards = manifest.shards.size();
    refuse_checkpoint(folder / missing.front(),
                      "is missing: this folder holds " + std::to_string(num_shards - missing.size()) + " of " +
                          std::to_string(num_shards) + " shards; the run folder of another " + "host may hold " +
                          (missing.size() == 1 ? "the missing one: copy it here" : "the missing ones: copy them here"));
}

/// Read, not mapped: what the disk does not give is then an error, where a map would end the process. Reading a large
/// shard takes time: each piece shows that the disk gives it.
Digest hash_in_pieces(const InputFile& file, const StopHook& stop) {
    Hasher hasher;
    Bytes piece;
    for (uint64_t offset = 0; offset < file.size_bytes(); offset += piece.size()) {
        piece.resize(std::min(kVerifiedAtOnce, file.size_bytes() - offset));
        file.read(offset, piece);
        hasher.add(piece);
        reached(stop, "verify.piece_read");
    }
    return hasher.digest();
}

std::string spec_text(DType dtype, const std::vector<int64_t>& shape) {
    return std::string(name_of(dtype)) + shape_text(shape);
}

}  // namespace

struct CheckpointReader::Impl {
    explicit Impl(const fs::path& path) : folder(path), manifest(read_manifest(path)) {}

    fs::path folder;
    Manifest manifest;
    std::optional<std::set<std::string>> only;  // of a part: the shards that are asked for
    std::vector<SafetensorsFile> shards;        // in the order of the manifest once opened
    std::vector<std::string> opened_files;
    std::map<std::string, size_t> index;  // tensor -> shard
    bool opened = false;

    bool is_asked_for(const ShardRecord& record) const { return !only || only->contains(record.file); }

    void check_parts() const {
        if (!only) check_all_there(folder, manifest);
    }

    /// Every byte of one shard.
    void verify_shard(const ShardRecord& record, const StopHook& stop = {}) const {
        const fs::path path = folder / record.file;
        check_plain_file(path);
        const InputFile file(path);
        check_size(path, file.size_bytes(), record);
        const Digest digest = hash_in_pieces(file, stop);
        if (digest != record.digest) {
            refuse_checkpoint(
                path, "damaged: its checksum is " + to_hex(digest) + ", the manifest has " + to_hex(record.digest));
        }
    }

    SafetensorsFile open_shard(const ShardRecord& record) const {
        const fs::path path = folder / record.file;
        check_plain_file(path);
        std::error_code problem;
        const uintmax_t size = fs::file_size(path, problem);
        if (!problem) check_size(path, size, record);  // before its header is read: a shard that was cut off says so
        SafetensorsFile shard(path);
        check_size(path, shard.bytes().size(), record);
        const auto save_id = shard.metadata().find("save_id");
        if (save_id == shard.metadata().end() || save_id->second != manifest.save_id) {
            refuse_checkpoint(path,
                              "belongs to save '" +
                                  (save_id == shard.metadata().end() ? "" : printable(save_id->second.substr(0, 64))) +
                                  "', the manifest to save '" + manifest.save_id + "'");
        }
        return shard;
    }

    /// Maps all shards and finds who holds which tensor; the first call does it.
    void open() {
        if (opened) return;
        check_parts();
        shards.clear();
        index.clear();
        opened_files.clear();
        for (const ShardRecord& record : manifest.shards) {
            if (!is_asked_for(record)) continue;
            opened_files.push_back(record.file);
            shards.push_back(open_shard(record));
            for (const SafetensorsEntry& entry : shards.back().entries()) {
                const auto [place, added] = index.emplace(entry.name, shards.size() - 1);
                if (!added) {
                    refuse_checkpoint(folder / record.file, "holds the tensor '" + entry.name + "' that " +
                                                                opened_files[place->second] + " holds too");
                }
            }
        }
        opened = true;
    }
};

CheckpointReader::CheckpointReader(const fs::path& folder) : impl_(std::make_unique<Impl>(folder)) {}
CheckpointReader::CheckpointReader(const fs::path& folder, std::set<std::string> shards) : CheckpointReader(folder) {
    impl_->only = std::move(shards);
}
CheckpointReader::~CheckpointReader() = default;
CheckpointReader::CheckpointReader(CheckpointReader&&) noexcept = default;

const Manifest& CheckpointReader::manifest() const {
    return impl_->manifest;
}

bool CheckpointReader::lacks_shards() const {
    return !missing_shards(impl_->folder, impl_->manifest).empty();
}

void CheckpointReader::verify(const StopHook& stop) const {
    check_file_list(impl_->folder, impl_->manifest);
    impl_->check_parts();
    for (const ShardRecord& record : impl_->manifest.shards) {
        if (impl_->is_asked_for(record)) impl_->verify_shard(record, stop);
    }
    impl_->open();
}

void CheckpointReader::check_files() const {
    check_file_list(impl_->folder, impl_->manifest);
    impl_->open();
}

std::vector<ShardState> CheckpointReader::shard_states() const {
    check_file_list(impl_->folder, impl_->manifest);
    std::vector<ShardState> states;
    for (const ShardRecord& record : impl_->manifest.shards) {
        ShardState& state = states.emplace_back();
        try {
            state.is_there = is_there(impl_->folder / record.file);
            impl_->verify_shard(record);
            impl_->open_shard(record);
        } catch (const Error& error) {
            const CheckpointDamage damage = damage_told_by(error);
            state.problem = damage.text;
            state.may_be_whole = damage.bars_older;
        }
    }
    return states;
}

bool CheckpointReader::contains(const std::string& name) const {
    impl_->open();
    return impl_->index.contains(name);
}

TensorBytes CheckpointReader::tensor(const std::string& name) const {
    impl_->open();
    const auto place = impl_->index.find(name);
    if (place == impl_->index.end()) {
        refuse_checkpoint(impl_->folder, "has no tensor '" + printable(name) + "'" + did_you_mean(name, names()));
    }
    return *impl_->shards[place->second].find(name);
}

TensorBytes CheckpointReader::tensor(const std::string& name, DType dtype, const std::vector<int64_t>& shape) const {
    TensorBytes found = tensor(name);
    if (found.dtype != dtype || found.shape != shape) {
        refuse_checkpoint(impl_->folder, "the tensor '" + name + "' is " + spec_text(found.dtype, found.shape) +
                                             ", the model expects " + spec_text(dtype, shape));
    }
    return found;
}

std::vector<std::string> CheckpointReader::names() const {
    impl_->open();
    std::vector<std::string> names;
    for (const auto& [name, shard] : impl_->index) names.push_back(name);
    return names;
}

}  // namespace vpp
