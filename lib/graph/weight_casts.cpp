#include "graph/weight_casts.hpp"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/library.h>

#include <memory>
#include <utility>

namespace vpp {

namespace {

thread_local const WeightCasts* casts_in_use = nullptr;

/// What a cast gives back: a gradient in the weight's dtype.
class CastNode final : public torch::autograd::Node {
  public:
    explicit CastNode(const at::Tensor& weight)
        : Node({torch::autograd::impl::gradient_edge(weight)}), dtype_(weight.scalar_type()) {}

    torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
        const at::Tensor& gradient = gradients.front();
        return {gradient.defined() ? gradient.to(dtype_) : gradient};
    }
    std::string name() const override { return "vpp::CastNode"; }

  private:
    at::ScalarType dtype_;
};

at::Tensor cast_weight(const at::Tensor& weight, at::ScalarType dtype) {
    return casts_in_use ? casts_in_use->use(weight, dtype) : weight;
}

TORCH_LIBRARY_FRAGMENT(vpp, library) {
    library.def("cast_weight(Tensor(a) weight, ScalarType dtype) -> Tensor(a)", cast_weight);
}

}  // namespace

WeightCasts::Key WeightCasts::key_of(const at::Tensor& weight, at::ScalarType dtype) {
    return {weight.storage().unsafeGetStorageImpl(), weight.storage_offset(), dtype};
}

void WeightCasts::add(const at::Tensor& weight, at::ScalarType dtype) {
    const bool is_cast = weight.layout() == at::kStrided && weight.scalar_type() == at::kFloat && weight.numel() > 0;
    if (!is_cast) return;
    for (const Copy& copy : copies_) {
        if (copy.weight.is_same(weight) && copy.dtype == dtype) return;
    }
    copies_.push_back({weight, dtype, {}, 0});
}

void WeightCasts::refresh() {
    index_.clear();
    for (size_t i = 0; i < copies_.size(); ++i) {
        Copy& copy = copies_[i];
        if (copy.cast.defined())
            copy.cast.copy_(copy.weight.detach());
        else
            copy.cast = copy.weight.detach().to(copy.dtype);
        copy.version = copy.weight._version();
        index_[key_of(copy.weight, copy.dtype)] = i;
    }
}

at::Tensor WeightCasts::use(const at::Tensor& weight, at::ScalarType dtype) const {
    if (!weight.has_storage()) return weight;
    const auto found = index_.find(key_of(weight, dtype));
    if (found == index_.end()) return weight;
    const Copy& copy = copies_[found->second];
    const bool is_alike = weight.sizes() == copy.weight.sizes() && weight.strides() == copy.weight.strides();
    if (!is_alike || weight._version() != copy.version) return weight;
    at::Tensor cast = copy.cast.detach();
    if (at::GradMode::is_enabled() && weight.requires_grad()) {
        torch::autograd::create_gradient_edge(cast, std::make_shared<CastNode>(weight));
    }
    return cast;
}

WeightCasts::Scope::Scope(const WeightCasts& casts) : before_(std::exchange(casts_in_use, &casts)) {}

WeightCasts::Scope::~Scope() {
    casts_in_use = before_;
}

}  // namespace vpp
