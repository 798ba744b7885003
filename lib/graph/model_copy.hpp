#pragma once
// A TorchScript file loaded whole, to be written again with other values: what `vpp export` makes of a model file.
#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/archive.hpp"

namespace vpp {

/// A parameter or buffer of the file.
struct ModelWeight {
    std::string name;
    std::vector<std::string> aliases;  ///< other names of the same tensor
    at::Tensor tensor;                 ///< detached: copy_ into it changes the model
    bool is_buffer = false;
    bool has_data = true;  ///< else it is NaN until somebody copies numbers into it
};

class ModelCopy {
  public:
    /// Throws: Error{BadData} for a file that LibTorch cannot load, and for damage: every weight's checksum is
    /// compared.
    explicit ModelCopy(std::shared_ptr<const Archive> archive);
    ~ModelCopy();
    ModelCopy(ModelCopy&&) noexcept;

    /// In the order of the model's named_parameters(), then buffers.
    const std::vector<ModelWeight>& weights() const { return weights_; }

    /// The model as a TorchScript file, piece by piece, as torch.jit.load of the same LibTorch reads it. Code, modes,
    /// strides, ties and extra files are those of the file that was loaded.
    /// Throws: what the sink throws, after LibTorch was done with its writer: it would end the process when a write
    ///         fails.
    void write(const std::function<void(std::span<const std::byte>)>& sink) const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
    std::vector<ModelWeight> weights_;
};

}  // namespace vpp
