#include <ATen/core/Tensor.h>
#include <ATen/ops/_fused_sgd.h>

#include "optim/rules.hpp"

namespace vpp::detail {

namespace {

void update_by_kernel(const UpdateBatch& batch, const OptimizerValues& values, double lr) {
    const bool has_momentum = values.momentum != 0;
    const std::vector<at::Tensor> none;
    at::_fused_sgd_(batch.parameters, batch.gradients, has_momentum ? batch.slots[0] : none, values.weight_decay,
                    values.momentum, lr, values.dampening, values.nesterov, /*maximize=*/false,
                    /*is_first_step=*/has_momentum && batch.is_first, std::nullopt, std::nullopt);
}

bool is_half_on_cpu(const at::Tensor& tensor) {
    return tensor.is_cpu() && (tensor.scalar_type() == at::kBFloat16 || tensor.scalar_type() == at::kHalf);
}

/// Each by itself, so that float32 copies of only one are there at a time.
void update_in_float32(const UpdateBatch& batch, const OptimizerValues& values, double lr) {
    for (size_t i = 0; i < batch.parameters.size(); ++i) {
        UpdateBatch one{{batch.parameters[i].to(at::kFloat)}, {batch.gradients[i].to(at::kFloat)}, {}, batch.is_first};
        for (const auto& slot : batch.slots) one.slots.push_back({slot[i].to(at::kFloat)});
        update_by_kernel(one, values, lr);
        batch.parameters[i].copy_(one.parameters[0]);
        for (size_t k = 0; k < batch.slots.size(); ++k) batch.slots[k][i].copy_(one.slots[k][0]);
    }
}

}  // namespace

std::vector<Slot> sgd_slots(const OptimizerValues& values) {
    if (values.momentum == 0) return {};
    return {{"momentum_buffer"}};
}

void update_sgd(const UpdateBatch& batch, const OptimizerValues& values, double lr) {
    // LibTorch's kernel for the CPU loses updates of half precision (pytorch issue 191763); that for cards computes
    // them in float32 and rounds once, as is done here.
    const bool is_half = !batch.parameters.empty() && is_half_on_cpu(batch.parameters.front());
    (is_half ? update_in_float32 : update_by_kernel)(batch, values, lr);
}

}  // namespace vpp::detail
