#pragma once
// Weights without a training: a safetensors file of parameters and buffers under the model's own names, as any library
// for that format writes and reads it; several of them with an index; or the same out of a checkpoint. FORMAT.md,
// "Exported weights".
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/safetensors.hpp"

namespace vpp {

/// Named weights opened for reading; names have no "model." in front.
class WeightsFile {
  public:
    /// A safetensors file, an index of several (a .json beside them), a folder with one of these
    /// (checkpoint/weights_folder.hpp), or a checkpoint's folder, whose optimizer state is left aside. Only headers are
    /// read.
    /// Throws: Error{MissingInput, BadData, Refused}.
    explicit WeightsFile(const std::filesystem::path& path);

    /// The file, the index, or a checkpoint's folder.
    const std::filesystem::path& path() const { return path_; }
    /// Of all files that belong to it.
    uint64_t size_bytes() const;
    /// Compares every byte with the checksums: those of a checkpoint, or the one of a file that vpp exported. A file of
    /// another writer has none.
    /// Throws: Error{BadData}.
    void verify() const;
    /// In order of name.
    std::vector<std::string> names() const;
    /// Owns: the bytes live as long as this object, and may be unaligned: copy, do not cast.
    std::optional<TensorBytes> find(const std::string& name) const;
    /// The checkpoint, if it is one.
    const CheckpointReader* checkpoint() const { return checkpoint_ ? &*checkpoint_ : nullptr; }
    /// Finished updates, where the file says so.
    std::optional<std::string> step() const;

  private:
    void open_file(const std::filesystem::path& path);
    void open_index();

    std::filesystem::path path_;
    std::optional<CheckpointReader> checkpoint_;
    std::vector<SafetensorsFile> files_;     // one, or those of an index
    std::map<std::string, size_t> file_of_;  // tensor -> which of them has it
};

/// What an exported file says beside the tensors.
struct WeightsNotes {
    std::map<std::string, std::string> facts;    ///< "step", "samples"
    std::map<std::string, std::string> aliases;  ///< other name of a tied tensor -> the name it is written under
};

/// Writes weights, fsynced, with format = "pt", the notes and a checksum. Aliases go into the metadata as the names of
/// entries whose text is the owner's name, as safetensors' save_model for PyTorch does it.
/// Throws: as write_safetensors.
void write_weights(const std::filesystem::path& path, const std::vector<TensorBytes>& tensors,
                   const WeightsNotes& notes);

}  // namespace vpp
