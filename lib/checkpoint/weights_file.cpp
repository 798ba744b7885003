#include "checkpoint/weights_file.hpp"

#include <algorithm>
#include <system_error>

#include "base/error.hpp"

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

}  // namespace

WeightsFile::WeightsFile(const fs::path& path) : path_(path) {
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) {
        checkpoint_.emplace(path);
    } else {
        file_.emplace(path);
    }
}

void WeightsFile::verify() const {
    if (checkpoint_) return checkpoint_->verify();
    const auto said = file_->metadata().find(kChecksumKey);
    if (said == file_->metadata().end()) return;
    std::vector<TensorBytes> tensors;
    for (const SafetensorsEntry& entry : file_->entries()) tensors.push_back(*file_->find(entry.name));
    const std::string computed = to_hex(tensors_checksum(std::move(tensors)));
    if (said->second == computed) return;
    throw Error(ErrorKind::BadData, path_.string() + ": damaged: the checksum of its tensors is " + computed +
                                        ", its metadata has " + printable(said->second.substr(0, 64)) +
                                        "; when a program changed it on purpose, let it leave out the metadata '" +
                                        kChecksumKey + "'");
}

std::vector<std::string> WeightsFile::names() const {
    std::vector<std::string> names;
    if (file_) {
        for (const SafetensorsEntry& entry : file_->entries()) names.push_back(entry.name);
        return names;
    }
    for (const std::string& name : checkpoint_->names()) {
        if (name.starts_with(kPrefix)) names.push_back(name.substr(kPrefix.size()));
    }
    return names;
}

std::optional<TensorBytes> WeightsFile::find(const std::string& name) const {
    if (file_) return file_->find(name);
    if (!checkpoint_->contains(kPrefix + name)) return std::nullopt;
    return checkpoint_->tensor(kPrefix + name);
}

std::optional<std::string> WeightsFile::step() const {
    if (checkpoint_) return std::to_string(checkpoint_->manifest().state.step);
    const auto said = file_->metadata().find("step");
    if (said == file_->metadata().end()) return std::nullopt;
    return printable(said->second.substr(0, 20));
}

void write_weights(const fs::path& path, const std::vector<TensorBytes>& tensors, const WeightsNotes& notes) {
    std::map<std::string, std::string> metadata{{"format", "pt"}, {kChecksumKey, to_hex(tensors_checksum(tensors))}};
    metadata.insert(notes.facts.begin(), notes.facts.end());
    metadata.insert(notes.aliases.begin(), notes.aliases.end());
    write_safetensors(path, tensors, metadata);
}

}  // namespace vpp
