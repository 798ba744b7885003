#pragma once
// Loading one model file into a LibTorch module, without the bytes of its weights: where each weight lies in the map is
// noted instead. The one place that hands a file to LibTorch; the code in it is judged before.
#include <torch/csrc/jit/api/module.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "graph/archive.hpp"

namespace vpp {

/// A weight record and where LibTorch wanted its bytes.
struct WeightRecord {
    std::string name;
    uint64_t offset = 0;
    uint64_t size_bytes = 0;
    const void* destination = nullptr;  ///< base of the storage that stands for it
};

/// A file that was loaded.
struct LoadedFile {
    std::shared_ptr<const Archive> archive;
    std::vector<WeightRecord> records;
};

/// Loads a module; the file is added to `files`. The storages of its parameters stand for the records: they are never
/// touched and take no memory.
/// Throws Error{Refused}: operators that need trust (graph/operator_check.hpp). Error{BadData}: LibTorch reads other
/// records than the archive has, or cannot load them; weights are compressed; it has too many names
/// (graph/module_names.hpp).
torch::jit::Module load_module(const std::shared_ptr<const Archive>& archive, const std::vector<std::string>& trusted,
                               std::vector<LoadedFile>& files);

}  // namespace vpp
