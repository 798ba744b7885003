#include "graph/gradient_watch.hpp"

#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <memory>

#include "graph/ivalue_tensors.hpp"

namespace vpp {

namespace {

const c10::StorageImpl* memory_of(const at::Tensor& tensor) {
    return tensor.has_storage() ? tensor.storage().unsafeGetStorageImpl() : nullptr;
}

}  // namespace

void give_gradient(const at::Tensor& tensor) {
    const auto history = std::make_shared<torch::autograd::UndefinedGrad>();
    torch::autograd::impl::set_gradient_edge(tensor, {history, history->add_input_metadata(tensor)});
}

void GradientWatch::add(const c10::IValue& value) {
    watch(value, false);
}

void GradientWatch::add_given(const c10::IValue& value) {
    watch(value, true);
}

void GradientWatch::watch(const c10::IValue& value, bool is_given) {
    for (at::Tensor& tensor : tensors_in(value)) {
        std::vector<Watched>& sharing = sharing_[memory_of(tensor)];
        const auto is_same = [&](const Watched& watched) { return watched.tensor.is_same(tensor); };
        if (std::ranges::any_of(sharing, is_same)) continue;
        const bool requires_grad = tensor.requires_grad();
        sharing.push_back({std::move(tensor), requires_grad, is_given});
    }
}

void GradientWatch::look_again(const c10::IValue& value, int op) {
    for (const at::Tensor& written : tensors_in(value)) {
        for (Watched& watched : sharing_[memory_of(written)]) {
            if (watched.tensor.requires_grad() == watched.requires_grad) continue;
            watched.requires_grad = !watched.requires_grad;
            flips_[watched.tensor.unsafeGetTensorImpl()].push_back(op);
        }
    }
}

void GradientWatch::look_behind_branch(const c10::IValue& value, int op, bool takes_gradient) {
    for (const at::Tensor& written : tensors_in(value)) {
        for (Watched& watched : sharing_[memory_of(written)]) {
            const at::Tensor& tensor = watched.tensor;
            const bool is_differentiable = tensor.is_floating_point() || tensor.is_complex();
            const bool gains = watched.requires_grad || (takes_gradient && !watched.is_given);
            if (!is_differentiable || tensor.requires_grad() || !gains) continue;
            give_gradient(tensor);
            // Lost on this way alone: it is not to be cut from the op that takes it.
            std::vector<int>& flips = flips_[tensor.unsafeGetTensorImpl()];
            if (watched.requires_grad) flips.insert(flips.end(), 2, op);
        }
    }
    look_again(value, op);
}

}  // namespace vpp
