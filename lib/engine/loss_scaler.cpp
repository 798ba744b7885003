#include "engine/loss_scaler.hpp"

#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>

#include "base/error.hpp"

namespace vpp {

namespace {

constexpr float kGrowth = 2, kBackoff = 0.5;

}  // namespace

LossScaler::LossScaler(const TrainPlan& plan)
    : scale_(static_cast<float>(plan.loss_scale)), growth_interval_(plan.loss_scale_every) {}

at::Tensor LossScaler::factor() const {
    return at::scalar_tensor(scale_, at::kFloat);
}

bool LossScaler::unscale(const std::vector<at::Tensor>& gradients) const {
    const c10::NoGradGuard no_grad;
    std::map<at::ScalarType, std::vector<at::Tensor>> by_dtype;
    for (const at::Tensor& gradient : gradients) {
        if (gradient.scalar_type() == at::kHalf) {
            throw Error(ErrorKind::BadData,
                        "a gradient is in fp16, which the loss scale cannot be taken out of; export the model with "
                        "parameters in float32");
        }
        by_dtype[gradient.scalar_type()].push_back(gradient);
    }
    // The reciprocal is formed in double, as GradScaler forms it.
    if (gradients.empty()) return false;
    const at::Device device = gradients.front().device();
    const at::Tensor inverse =
        at::scalar_tensor(1.0 / static_cast<double>(scale_), at::kDouble).to(at::kFloat).to(device);
    at::Tensor found = at::zeros({}, at::TensorOptions().dtype(at::kFloat).device(device));
    for (auto& [dtype, list] : by_dtype) at::_amp_foreach_non_finite_check_and_unscale_(list, found, inverse);
    return found.item<float>() != 0;
}

void LossScaler::update(bool overflow) {
    if (overflow) {
        scale_ *= kBackoff;
        good_steps_ = 0;
        return;
    }
    if (++good_steps_ < growth_interval_) return;
    good_steps_ = 0;
    if (std::isfinite(scale_ * kGrowth)) scale_ *= kGrowth;
}

std::string LossScaler::memory() const {
    char text[64];
    std::snprintf(text, sizeof text, "%a %lld", static_cast<double>(scale_), static_cast<long long>(good_steps_));
    return text;
}

void LossScaler::restore(const std::string& memory) {
    std::istringstream words(memory);
    std::string scale, rest;
    int64_t good_steps = -1;
    words >> scale >> good_steps;
    char* end = nullptr;
    const double value = std::strtod(scale.c_str(), &end);
    const bool is_number = !scale.empty() && *end == '\0' && value > 0 && std::isfinite(static_cast<float>(value));
    if (!words || !is_number || good_steps < 0 || words >> rest) {
        throw Error(ErrorKind::BadData, "the checkpoint's loss scale cannot be read; go on from another checkpoint");
    }
    scale_ = static_cast<float>(value);
    good_steps_ = good_steps;
}

}  // namespace vpp
