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

/// Lets a tensor require a gradient as one does that an op has made. Requires: it requires none.
void give_gradient(const at::Tensor& tensor);

class GradientWatch {
  public:
    /// Takes in the tensors of a value as they are now; known ones stay as they are.
    void add(const c10::IValue& value);
    /// The same for what comes from outside.
    void add_given(const c10::IValue& value);

    /// Looks again at the tensors of a value that op `op` may have written, and at all that share memory with them.
    /// Requires: ops come in their order; every tensor stays alive as long as the watch.
    void look_again(const c10::IValue& value, int op);

    /// The same for a branch or loop that follows the data: on another way it may have written or not. From then on
    /// they require a gradient, as in some microbatch they may, where they did before, or `takes_gradient` says that it
    /// is given something that does. What comes from outside is as it was seen.
    void look_behind_branch(const c10::IValue& value, int op, bool takes_gradient);

    const GradientFlips& flips() const { return flips_; }

  private:
    struct Watched {
        at::Tensor tensor;
        bool requires_grad = false;
        bool is_given = false;
    };
    void watch(const c10::IValue& value, bool is_given);

    std::unordered_map<const c10::StorageImpl*, std::vector<Watched>> sharing_;  ///< by memory
    GradientFlips flips_;
};

}  // namespace vpp
