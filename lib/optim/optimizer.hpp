#pragma once
// The optimizer of one rank: groups of parameters, their learning rates, and the state of the plan's update rule. With
// the same gradients it has the bits of torch.optim.AdamW, Adam or SGD with fused=True, whichever rank holds what.
//
// Names of state tensors are "<parameter>.<slot>", with torch.optim's slots: "h.0.ln.weight.exp_avg".
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace vpp {

namespace detail {
struct UpdateRule;
}  // namespace detail

/// The values that optimizer.kind may have.
std::vector<std::string> optimizer_kinds();

struct TrainedParameter {
    std::string name;   ///< fully qualified name in the model
    at::Tensor tensor;  ///< a leaf; its `.grad` is what a step reads
};

struct StateTensor {
    std::string name;
    at::Tensor tensor;  ///< the optimizer's own, with the parameter's strides; a step writes to it
};

/// Gives the saved tensor of a name, which must have this dtype and shape; nothing when there is none of that name.
using StateReader = std::function<std::optional<at::Tensor>(const std::string& name, at::ScalarType dtype,
                                                            const std::vector<int64_t>& shape)>;

/// Updates parameters from their gradients.
/// Invariant: a parameter has all of its state or none; it gets it at its first step with a gradient. One without a
/// gradient is left alone: no update, no decay, no state, no count of steps.
class Optimizer {
  public:
    /// Requires: names differ; tensors are floating-point leaves; values are within the ranges of the plan's keys.
    /// Owns:     shares the tensors.
    /// Throws:   Error{Plan} for an unknown kind.
    Optimizer(const OptimizerPlan& plan, std::vector<TrainedParameter> parameters);

    /// The learning rate of each group: the declared ones in order, then the default group.
    /// Units: step counts finished updates before this one, from 0.
    std::vector<double> learning_rates(const LrSchedulePlan& schedule, int64_t step, int64_t total_steps) const;

    /// One update.
    /// Throws: Error{BadData} before anything is changed, when a gradient is sparse or is laid out in memory in
    ///         another way than its parameter (the kernels walk both in the order of memory).
    /// Calls:  one thread; the number of intra-op threads changes no bits.
    void step(const LrSchedulePlan& schedule, int64_t step, int64_t total_steps);

    /// The state there is, in the order of the parameters.
    std::vector<StateTensor> state() const;

    /// Of the state once every parameter has had a gradient.
    int64_t full_state_bytes() const;

    /// Replaces all state by copies of what the reader gives. A parameter of which nothing was saved never had a
    /// gradient and starts without.
    /// Throws: Error{BadData} when only a part of a parameter's state is there, or is of another dtype or shape; then
    ///         nothing was replaced.
    void load_state(const StateReader& read);

  private:
    struct Trained {
        TrainedParameter parameter;
        size_t group = 0;
        std::vector<at::Tensor> slots;  ///< as the rule's slots of the group; empty before the first update
    };

    std::vector<at::Tensor> read_slots(const Trained& trained, const StateReader& read) const;

    const detail::UpdateRule* rule_;
    std::vector<OptimizerValues> groups_;  ///< the default group last
    std::vector<Trained> trained_;
};

}  // namespace vpp
