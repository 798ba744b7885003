#include "checkpoint/weights_file.hpp"

#include <algorithm>
#include <system_error>

#include "base/bad_data.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "checkpoint/file_status.hpp"
#include "checkpoint/folder_names.hpp"
#include "checkpoint/weights_folder.hpp"
#include "checkpoint/weights_index.hpp"

namespace vpp {

namespace fs = std::filesystem;

namespace {

const std::string kPrefix = "model.";
const std::string kChecksumKey = "weights_xxh3_128";

/// Of names, forms and bytes in the order of names, whatever the order in the file.
Digest tensors_checksum(std::vector<TensorBytes> tensors) {
    std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    Hasher hasher;
    for (const TensorBytes& tensor : tensors) {
        hasher.add_text(tensor.name);
        hasher.add_text(std::string(name_of(tensor.dtype)) + shape_text(tensor.shape));
        hasher.add(tensor.bytes);
    }
    return hasher.digest();
}

void verify_file(const SafetensorsFile& file) {
    const auto said = file.metadata().find(kChecksumKey);
    if (said == file.metadata().end()) return;
    std::vector<TensorBytes> tensors;
    for (const SafetensorsEntry& entry : file.entries()) tensors.push_back(*file.find(entry.name));
    const std::string computed = to_hex(tensors_checksum(std::move(tensors)));
    if (said->second == computed) return;
    refuse_data(file.path().string(), "damaged: the checksum of its tensors is " + computed + ", its metadata has " +
                                          printable(said->second.substr(0, 64)) +
                                          "; when a program changed it on purpose, let it leave out the metadata '" +
                                          kChecksumKey + "'");
}

}  // namespace

WeightsFile::WeightsFile(const fs::path& path) : path_(path) {
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) {
        if (is_there(path / kManifestFile)) {
            checkpoint_.emplace(path);
            return;
        }
        path_ = weights_in(path);
    }
    if (path_.extension() == ".json") {
        open_index();
    } else {
        open_file(path_);
        for (const SafetensorsEntry& entry : files_.front().entries()) file_of_.emplace(entry.name, 0);
    }
}

void WeightsFile::open_file(const fs::path& path) {
    files_.emplace_back(path);
    if (files_.back().metadata().contains("save_id")) {
        refuse_data(path.string(),
                    "is a part of a checkpoint; name the folder that has its " + std::string(kManifestFile));
    }
}

/// Its files may be links, as for any single file: download caches hold nothing else.
void WeightsFile::open_index() {
    std::map<std::string, size_t> place_of;  // file name -> in files_
    for (const auto& [name, file] : parse_weights_index(read_text_file(path_, kMaxIndexBytes), path_.string())) {
        const auto [place, is_new] = place_of.emplace(file, files_.size());
        if (is_new) open_file(path_.parent_path() / file);
        if (!files_[place->second].find(name)) {
            refuse_data(path_.string(), "names " + file + " as the file of tensor '" + name + "', which it has not");
        }
        file_of_.emplace(name, place->second);
    }
}

uint64_t WeightsFile::size_bytes() const {
    uint64_t bytes = 0;
    if (checkpoint_) {
        for (const ShardRecord& shard : checkpoint_->manifest().shards) bytes += shard.size_bytes;
    }
    for (const SafetensorsFile& file : files_) bytes += file.bytes().size();
    return bytes;
}

void WeightsFile::verify() const {
    if (checkpoint_) return checkpoint_->verify();
    for (const SafetensorsFile& file : files_) verify_file(file);
}

std::vector<std::string> WeightsFile::names() const {
    std::vector<std::string> names;
    if (!checkpoint_) {
        for (const auto& [name, file] : file_of_) names.push_back(name);
        return names;
    }
    for (const std::string& name : checkpoint_->names()) {
        if (name.starts_with(kPrefix)) names.push_back(name.substr(kPrefix.size()));
    }
    return names;
}

std::optional<TensorBytes> WeightsFile::find(const std::string& name) const {
    if (checkpoint_) {
        if (!checkpoint_->contains(kPrefix + name)) return std::nullopt;
        return checkpoint_->tensor(kPrefix + name);
    }
    const auto file = file_of_.find(name);
    if (file == file_of_.end()) return std::nullopt;
    return files_[file->second].find(name);
}

std::optional<std::string> WeightsFile::step() const {
    if (checkpoint_) return std::to_string(checkpoint_->manifest().state.step);
    if (files_.size() > 1) return std::nullopt;
    const auto said = files_.front().metadata().find("step");
    if (said == files_.front().metadata().end()) return std::nullopt;
    return printable(said->second.substr(0, 20));
}

void write_weights(const fs::path& path, const std::vector<TensorBytes>& tensors, const WeightsNotes& notes) {
    std::map<std::string, std::string> metadata{{"format", "pt"}, {kChecksumKey, to_hex(tensors_checksum(tensors))}};
    metadata.insert(notes.facts.begin(), notes.facts.end());
    metadata.insert(notes.aliases.begin(), notes.aliases.end());
    write_safetensors(path, tensors, metadata);
}

}  // namespace vpp
