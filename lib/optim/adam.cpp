#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>

#include "optim/rules.hpp"

namespace vpp::detail {

namespace {

enum SlotIndex : size_t { kStep, kExpAvg, kExpAvgSq, kMaxExpAvgSq };

using FusedKernel = void (*)(at::TensorList, at::TensorList, at::TensorList, at::TensorList, at::TensorList,
                             at::TensorList, double, double, double, double, double, bool, bool,
                             const std::optional<at::Tensor>&, const std::optional<at::Tensor>&);

void update_with(FusedKernel kernel, const UpdateBatch& batch, const OptimizerValues& values, double lr) {
    // The kernels take the number of this update, not of those before it.
    at::_foreach_add_(batch.slots[kStep], 1);
    const std::vector<at::Tensor> none;
    kernel(batch.parameters, batch.gradients, batch.slots[kExpAvg], batch.slots[kExpAvgSq],
           values.amsgrad ? batch.slots[kMaxExpAvgSq] : none, batch.slots[kStep], lr, values.beta1, values.beta2,
           values.weight_decay, values.eps, values.amsgrad, /*maximize=*/false, std::nullopt, std::nullopt);
}

}  // namespace

std::vector<Slot> adam_slots(const OptimizerValues& values) {
    std::vector<Slot> slots = {{"step", true}, {"exp_avg"}, {"exp_avg_sq"}};
    // Zero is the neutral start of a maximum, so amsgrad can be switched on between two runs.
    if (values.amsgrad) slots.push_back({"max_exp_avg_sq", false, true});
    return slots;
}

void update_adam(const UpdateBatch& batch, const OptimizerValues& values, double lr) {
    update_with(&at::_fused_adam_, batch, values, lr);
}

void update_adamw(const UpdateBatch& batch, const OptimizerValues& values, double lr) {
    update_with(&at::_fused_adamw_, batch, values, lr);
}

}  // namespace vpp::detail
