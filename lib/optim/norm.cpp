#include "optim/norm.hpp"

#include <ATen/ops/clamp.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include "base/error.hpp"
#include "device/memory_begin.hpp"

namespace vpp {

namespace {

constexpr double kNormOrder = 2;
constexpr double kSmall = 1e-6;           // what Python adds to the total
constexpr int64_t kWidestReadBytes = 64;  // by an instruction of a CPU; cards read 32 at most

}  // namespace

at::Tensor parameter_norm(const at::Tensor& gradient) {
    if (!gradient.defined()) return {};
    const c10::NoGradGuard no_grad;
    // Where a gradient lies depends on the layout: replicas have sums in memory of their own.
    const bool is_aligned = begin_bytes_of(gradient) % kWidestReadBytes == 0;
    return at::linalg_vector_norm(is_aligned ? gradient : gradient.clone(), kNormOrder);
}

at::Tensor total_norm(const std::vector<at::Tensor>& norms) {
    const c10::NoGradGuard no_grad;
    std::vector<at::Tensor> defined;
    for (const at::Tensor& norm : norms) {
        if (norm.defined()) defined.push_back(norm);
    }
    if (defined.empty()) return at::zeros({});
    return at::linalg_vector_norm(at::stack(defined), kNormOrder);
}

at::Tensor clip_coefficient(const at::Tensor& total, double max_norm) {
    check(max_norm > 0, "gradients are clipped to a norm above 0");
    const c10::NoGradGuard no_grad;
    const at::Tensor coefficient = total.add(kSmall).reciprocal().mul(max_norm);
    return at::clamp(coefficient, std::nullopt, 1.0);
}

void scale_gradients(const std::vector<at::Tensor>& gradients, const at::Tensor& coefficient) {
    const c10::NoGradGuard no_grad;
    for (const at::Tensor& gradient : gradients) {
        if (gradient.defined()) gradient.mul_(coefficient.to(gradient.device()));
    }
}

}  // namespace vpp
