#pragma once
// The `.grad` of parameters where recorded ops add into it: memory that stays, so that a replay finds it.
#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <vector>

namespace vpp {

class GradientSums {
  public:
    explicit GradientSums(std::vector<at::Tensor> parameters);

    /// To be called before the first action of a step, when no parameter has a gradient.
    void begin_step();

    /// Calls ops that are recorded and that add gradients into `.grad`, as autograd does: here that is these sums.
    /// `.grad` is left as it was. Gives which parameters got one.
    std::vector<size_t> record(const std::function<void()>& ops);

    /// Replays them: `.grad` has what they give added, or alone where it was undefined, with the bits of ops that run
    /// one by one.
    void add(const std::vector<size_t>& given, const std::function<void()>& replay);

  private:
    void begin_at_nothing(const std::vector<size_t>& some);

    std::vector<at::Tensor> parameters_, sums_;
    std::vector<bool> are_in_use_;  ///< in this step: be it as `.grad` or put aside
};

}  // namespace vpp
