#include <ATen/ops/_fused_sgd.h>

#include "optim/rules.hpp"

namespace vpp::detail {

std::vector<Slot> sgd_slots(const OptimizerValues& values) {
    if (values.momentum == 0) return {};
    return {{"momentum_buffer"}};
}

void update_sgd(const UpdateBatch& batch, const OptimizerValues& values, double lr) {
    const bool has_momentum = values.momentum != 0;
    const std::vector<at::Tensor> none;
    at::_fused_sgd_(batch.parameters, batch.gradients, has_momentum ? batch.slots[0] : none, values.weight_decay,
                    values.momentum, lr, values.dampening, values.nesterov, /*maximize=*/false,
                    /*is_first_step=*/has_momentum && batch.is_first, std::nullopt, std::nullopt);
}

}  // namespace vpp::detail
