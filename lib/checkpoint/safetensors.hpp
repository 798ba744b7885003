#pragma once
// Safetensors files: a durable writer that hashes what it writes, and a mapped reader that trusts nothing.
// Files load with any safetensors library, and files of other writers load here.
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/hash.hpp"
#include "base/safetensors_header.hpp"
#include "base/tensor_bytes.hpp"
#include "checkpoint/stop_point.hpp"

namespace vpp {

/// What was written.
struct WrittenFile {
    uint64_t size_bytes = 0;
    Digest digest;  ///< XXH3-128 of the whole file
};

/// Writes tensors and metadata to a new file and fsyncs it. The bytes depend on the set of tensors, not on their order:
/// larger elements come first, then the order of names, so that every tensor is aligned to its elements.
/// Requires: bytes of each tensor = dtype size x shape; names are distinct.
/// Throws:   Error{Output} when the file cannot be created, Error{Io} when a write fails (a partial file may be left),
///           Error{BadData} for a name that the format cannot hold.
/// Calls:    local. Stop points: shard.header_written, shard.piece_written for each 256 MiB of a
///           larger one, shard.tensor_written for each, shard.synced.
WrittenFile write_safetensors(const std::filesystem::path& path, const std::vector<TensorBytes>& tensors,
                              const std::map<std::string, std::string>& metadata, const StopHook& stop = {});

/// A file opened for reading. Invariant: the header was checked whole against the file's size when it was opened, so
/// every tensor that it gives lies inside the map.
class SafetensorsFile {
  public:
    /// Throws Error{MissingInput} when it is not there, Error{BadData} when anything in it is wrong.
    explicit SafetensorsFile(const std::filesystem::path& path);

    const std::filesystem::path& path() const { return map_.path(); }
    const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
    /// In order of name.
    const std::vector<SafetensorsEntry>& entries() const { return header_.entries; }
    /// The tensor with that name, if it is there.
    /// Owns: the bytes live as long as this object. In files of other writers they may be unaligned: copy, do not cast.
    std::optional<TensorBytes> find(const std::string& name) const;
    /// The whole file.
    std::span<const std::byte> bytes() const { return map_.bytes(); }

  private:
    MappedFile map_;
    SafetensorsHeader header_;
};

}  // namespace vpp
