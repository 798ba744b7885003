#include "stage/gradient_sums.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/_foreach_neg.h>
#include <ATen/ops/_foreach_zero.h>
#include <ATen/ops/empty_like.h>

#include <utility>

namespace vpp {

namespace {

std::vector<at::Tensor> those_of(const std::vector<at::Tensor>& all, const std::vector<size_t>& some) {
    std::vector<at::Tensor> found;
    for (size_t i : some) found.push_back(all[i]);
    return found;
}

/// In a kernel or few for all.
std::vector<at::Tensor> clones_of(const std::vector<at::Tensor>& tensors) {
    std::vector<at::Tensor> copies;
    for (const at::Tensor& tensor : tensors) copies.push_back(at::empty_like(tensor));
    if (!copies.empty()) at::_foreach_copy_(copies, tensors);
    return copies;
}

/// The layout that autograd gives a gradient (torch/csrc/autograd/utils/grad_layout_contract.h).
at::Tensor place_of_gradient(const at::Tensor& parameter) {
    const bool keeps_strides = parameter.is_non_overlapping_and_dense();
    return at::empty_like(parameter.detach(),
                          keeps_strides ? at::MemoryFormat::Preserve : at::MemoryFormat::Contiguous);
}

}  // namespace

GradientSums::GradientSums(std::vector<at::Tensor> parameters) : parameters_(std::move(parameters)) {
    for (const at::Tensor& parameter : parameters_) sums_.push_back(place_of_gradient(parameter));
    begin_step();
}

void GradientSums::begin_step() {
    are_in_use_.assign(parameters_.size(), false);
}

std::vector<size_t> GradientSums::record(const std::function<void()>& ops) {
    std::vector<at::Tensor> before;
    std::vector<uint32_t> versions;
    for (size_t i = 0; i < parameters_.size(); ++i) {
        before.push_back(std::exchange(parameters_[i].mutable_grad(), sums_[i]));
        versions.push_back(sums_[i].unsafeGetTensorImpl()->version_counter().current_version());
    }
    const auto put_back = [&] {
        for (size_t i = 0; i < parameters_.size(); ++i) parameters_[i].mutable_grad() = before[i];
    };
    try {
        ops();
    } catch (...) {
        put_back();
        throw;
    }
    put_back();
    std::vector<size_t> given;
    for (size_t i = 0; i < parameters_.size(); ++i) {
        if (sums_[i].unsafeGetTensorImpl()->version_counter().current_version() != versions[i]) given.push_back(i);
    }
    return given;
}

void GradientSums::add(const std::vector<size_t>& given, const std::function<void()>& replay) {
    const at::NoGradGuard no_grad;
    std::vector<size_t> first, others, apart;
    std::vector<at::Tensor> elsewhere;
    for (size_t i : given) {
        const at::Tensor& gradient = parameters_[i].grad();
        if (gradient.is_same(sums_[i])) continue;
        if (are_in_use_[i]) apart.push_back(i);
        (gradient.defined() ? others : first).push_back(i);
        if (gradient.defined()) elsewhere.push_back(gradient);
    }
    // What stands in these is put aside, as one of two gradients waits for its turn: it is there again afterwards.
    const std::vector<at::Tensor> aside = clones_of(those_of(sums_, apart));
    begin_at_nothing(first);
    if (!others.empty()) at::_foreach_copy_(those_of(sums_, others), elsewhere);
    replay();
    for (size_t i : given) {
        parameters_[i].mutable_grad() = sums_[i];
        are_in_use_[i] = true;
    }
    if (apart.empty()) return;
    const std::vector<at::Tensor> alone = clones_of(those_of(sums_, apart));
    for (size_t k = 0; k < apart.size(); ++k) parameters_[apart[k]].mutable_grad() = alone[k];
    at::_foreach_copy_(those_of(sums_, apart), aside);
}

/// Minus zero is what leaves every number as it is when that is added, zero too.
void GradientSums::begin_at_nothing(const std::vector<size_t>& some) {
    if (some.empty()) return;
    const std::vector<at::Tensor> sums = those_of(sums_, some);
    at::_foreach_zero_(sums);
    at::_foreach_neg_(sums);
}

}  // namespace vpp
