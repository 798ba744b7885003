#pragma once
// The update rules, one a kind of optimizer: what a rule keeps for each parameter, and one update of many parameters by
// LibTorch's fused kernel, whose bits are those of torch.optim with fused=True. A new kind is a file of its own, its
// declarations here and a row in rules.cpp; groups, learning rates, state and checkpoints come with it.
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace vpp::detail {

/// One tensor that a rule keeps for each parameter. It starts at zero.
struct Slot {
    const char* name;          ///< torch.optim's own: "exp_avg"
    bool is_scalar = false;    ///< 0-dim float32; else of the parameter's shape, strides and dtype
    bool is_optional = false;  ///< a checkpoint may lack it beside the others; it then starts at zero
};

/// Parameters of one group, dtype and device, with their gradients and state in the same order.
struct UpdateBatch {
    std::vector<at::Tensor> parameters, gradients;
    std::vector<std::vector<at::Tensor>> slots;  ///< by slot, then by parameter
    bool is_first = false;                       ///< the first update of these parameters
};

/// A kind of optimizer.
struct UpdateRule {
    const char* kind;
    /// The slots that a group with these values has.
    std::vector<Slot> (*slots)(const OptimizerValues& values);
    /// Updates parameters and slots in place. Requires: gradient mode is off; batch.slots are as slots(values) says.
    void (*update)(const UpdateBatch& batch, const OptimizerValues& values, double lr);
};

/// Every rule.
const std::vector<UpdateRule>& update_rules();
/// Throws: Error{Plan} for a kind that there is not.
const UpdateRule& find_update_rule(const std::string& kind);

/// Adam and AdamW: slots step, exp_avg, exp_avg_sq and, with amsgrad, max_exp_avg_sq.
/// Source: arXiv 1412.6980 (Adam), 1711.05101 (AdamW), 1904.09237 (amsgrad).
std::vector<Slot> adam_slots(const OptimizerValues& values);
void update_adam(const UpdateBatch& batch, const OptimizerValues& values, double lr);
void update_adamw(const UpdateBatch& batch, const OptimizerValues& values, double lr);

/// SGD: slot momentum_buffer when there is momentum; the first update sets it to the gradient, undampened.
std::vector<Slot> sgd_slots(const OptimizerValues& values);
void update_sgd(const UpdateBatch& batch, const OptimizerValues& values, double lr);

}  // namespace vpp::detail
