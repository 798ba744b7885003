#include "optim/memory_order.hpp"

#include "base/error.hpp"

namespace vpp {

namespace {

bool have_one_layout(const at::Tensor& a, const at::Tensor& b) {
    if (a.is_contiguous() && b.is_contiguous()) return true;
    return a.strides() == b.strides() && a.is_non_overlapping_and_dense();
}

}  // namespace

at::Tensor in_memory_order(const at::Tensor& tensor) {
    const at::Tensor plain = tensor.detach();
    check(plain.is_non_overlapping_and_dense(), "a tensor without gaps has an order in memory");
    return plain.as_strided({plain.numel()}, {1}, plain.storage_offset());
}

void check_gradient(const std::string& name, const at::Tensor& parameter) {
    const at::Tensor& gradient = parameter.grad();
    if (!gradient.defined()) return;
    if (gradient.layout() != at::kStrided) {
        throw Error(ErrorKind::BadData, "the gradient of " + printable(name) +
                                            " is sparse, which the fused optimizers cannot take; export the model "
                                            "with sparse=False");
    }
    check(gradient.sizes() == parameter.sizes() && gradient.dtype() == parameter.dtype(),
          "a gradient has the shape and dtype of its parameter");
    if (!have_one_layout(parameter, gradient)) {
        throw Error(ErrorKind::BadData, "the parameter " + printable(name) +
                                            " is not laid out densely in memory, as its gradient is; export the model "
                                            "with that parameter contiguous");
    }
}

}  // namespace vpp
