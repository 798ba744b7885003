#pragma once
// What the inputs of a model file may be, found out without its data: the arguments of forward, the op that each meets
// first, and whether forward runs with inputs of given shapes. For plans that are written for a model. No torch types.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "data/fields.hpp"
#include "graph/archive.hpp"

namespace vpp {

/// What an argument seems to be, by the first op on its way that says so.
enum class InputUse {
    Unknown,
    Linear,       ///< a linear layer takes it: weight [out, in]
    Convolution,  ///< a convolution takes it: weight [out, in / groups, kernel...]
    Indices,      ///< it chooses rows of an embedding: weight [rows, width]
    Normalized,   ///< a layer norm takes it: weight [last dims]
    Lengths,      ///< lengths of sequences, of which none may be 0
    Mask,         ///< true and false: which elements are chosen or filled
    Classes,      ///< a loss over classes compares with it: weight of the last layer before
    Target,       ///< another loss compares with it: weight of the last layer before
};

struct ForwardArgument {
    std::string name;
    std::string type = "Tensor";  ///< as TorchScript writes it
    bool has_default = false;     ///< and is left out
    DType numbers = DType::F32;   ///< of the model's first weights: what it is if it is no whole number
    InputUse use = InputUse::Unknown;
    std::vector<int64_t> weight = {};  ///< shape of the weight that it meets
    int64_t groups = 1;                ///< of the convolution
};

/// A tensor that forward returned; of a tuple, list or dict one for each.
struct TriedOutput {
    DType dtype = DType::F32;
    std::vector<int64_t> shape;  ///< samples included
    bool has_gradient = false;   ///< of weights
};

struct TriedForward {
    std::vector<TriedOutput> outputs;
    bool all_tensors = true;             ///< whether outputs[i] is what forward returns at place i
    std::optional<int64_t> num_classes;  ///< of the loss over classes in forward
    std::string problem;                 ///< why it failed on numbers; empty: it did not, or is too large to be tried
};

class InputTrial {
  public:
    /// Loads the model in train mode, without weights. With `feeds_targets` an optional tensor that is named as targets
    /// are (targets, labels) counts as one without a default: it may be what a loss needs.
    /// Throws what load_module throws; Error{BadData}: no forward, one that no pipeline can run, or one
    /// with an argument that is no tensor and has no default.
    explicit InputTrial(std::shared_ptr<const Archive> model, bool feeds_targets = true);
    ~InputTrial();

    const std::vector<ForwardArgument>& arguments() const;
    /// Whether one is fed though it has a default.
    bool feeds_optional() const;
    /// Runs forward with zeros for inputs and weights, on the meta device if it can be. That checks no index: a small
    /// model runs again on the CPU, with random inputs and weights of 0.02. Its warnings are not printed.
    /// Requires: a field for each argument without a default, in their order.
    /// Throws:   Error{BadData} naming the op that fails.
    TriedForward run(const std::vector<Field>& fields, int64_t samples) const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace vpp
