#include "stage/turns.hpp"

#include <ATen/core/grad_mode.h>

#include "base/error.hpp"

namespace vpp {

void GradientTurns::begin_step() {
    check(parked_.empty(), "every parked gradient was added in its step");
    next_ = 0;
}

void GradientTurns::run(int microbatch, const std::function<void()>& backward) {
    if (microbatch == next_) {
        backward();
        resolve_negated();
        ++next_;
        add_parked();
        return;
    }
    check(microbatch > next_ && !parked_.count(microbatch), "a microbatch has one backward pass");
    const std::vector<at::Tensor> sums = take_gradients();
    backward();
    resolve_negated();
    parked_[microbatch] = take_gradients();
    for (size_t i = 0; i < parameters_.size(); ++i) parameters_[i].mutable_grad() = sums[i];
}

void GradientTurns::resolve_negated() {
    for (at::Tensor& parameter : parameters_) {
        const at::Tensor& gradient = parameter.grad();
        if (gradient.defined() && gradient.is_neg()) parameter.mutable_grad() = gradient.resolve_neg();
    }
}

int64_t GradientTurns::parked_bytes() const {
    int64_t bytes = 0;
    for (const auto& [microbatch, gradients] : parked_) {
        for (const at::Tensor& gradient : gradients)
            bytes += gradient.defined() ? static_cast<int64_t>(gradient.nbytes()) : 0;
    }
    return bytes;
}

std::vector<at::Tensor> GradientTurns::take_gradients() {
    std::vector<at::Tensor> taken;
    for (at::Tensor& parameter : parameters_) {
        taken.push_back(parameter.grad());
        parameter.mutable_grad().reset();
    }
    return taken;
}

void GradientTurns::add_parked() {
    const at::NoGradGuard no_grad;
    for (auto it = parked_.find(next_); it != parked_.end(); it = parked_.find(next_)) {
        for (size_t i = 0; i < parameters_.size(); ++i) {
            at::Tensor& sum = parameters_[i].mutable_grad();
            const at::Tensor& gradient = it->second[i];
            if (!gradient.defined()) continue;
            if (sum.defined())
                sum.add_(gradient);
            else
                sum = gradient;
        }
        parked_.erase(it);
        ++next_;
    }
}

}  // namespace vpp
