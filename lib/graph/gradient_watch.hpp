#pragma once
// Which ops change in place whether a tensor requires a gradient: `y = zeros_like(x)` requires none until
// `y[:, :4] = z` writes a trained value into it. A cut before that op sends y without a gradient, a cut behind it with
// a gradient.
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <unordered_map>
#include <vector>

namespace vpp {

/// Ops that change a tensor's requires_grad, ascending. Tensors that keep theirs have no entry. Views of one memory
/// change together.
using GradientFlips = std::unordered_map<const at::TensorImpl*, std::vector<int>>;

class GradientWatch {
  public:
    /// Takes in the tensors of a value as they are now; known ones stay as they are.
    void add(const c10::IValue& value);

    /// Looks again at the tensors of a value that op `op` may have written, and at all that share memory with them.
    /// Requires: ops come in their order; every tensor stays alive as long as the watch.
    void look_again(const c10::IValue& value, int op);

    const GradientFlips& flips() const { return flips_; }

  private:
    struct Watched {
        at::Tensor tensor;
        bool requires_grad = false;
    };

    std::unordered_map<const c10::StorageImpl*, std::vector<Watched>> sharing_;  ///< by memory
    GradientFlips flips_;
};

}  // namespace vpp
