#include "device/repeated_elements.hpp"

#include <ATen/ops/empty_strided.h>

#include <vector>

#include "base/error.hpp"

namespace vpp {

at::Tensor without_repeats(at::Tensor tensor) {
    for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
        if (tensor.stride(dim) == 0 && tensor.size(dim) > 1) tensor = tensor.narrow(dim, 0, 1);
    }
    return tensor;
}

at::Tensor copy_with_repeats(const at::Tensor& tensor, at::Device device) {
    const at::Tensor once = without_repeats(tensor.detach());
    const at::Tensor copy = once.to(device, once.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
    if (copy.sizes() == tensor.sizes()) return copy;
    const std::vector<int64_t> strides = copy.expand(tensor.sizes()).strides().vec();
    at::Tensor repeated = at::empty_strided(tensor.sizes(), strides, copy.options());
    without_repeats(repeated).copy_(copy);
    return repeated;
}

void take_values(at::Tensor weight, const at::Tensor& values, const std::string& name) {
    const at::Tensor place = without_repeats(weight);
    at::Tensor once = values;
    for (int64_t dim = 0; dim < place.dim(); ++dim) once = once.narrow(dim, 0, place.size(dim));
    if (place.sizes() != weight.sizes() && !once.expand(values.sizes()).equal(values)) {
        throw Error(ErrorKind::BadData, "the model file repeats elements of '" + name +
                                            "', as expand does, and the weights have several values for one; export "
                                            "the model with .clone() behind expand");
    }
    place.copy_(once);
}

}  // namespace vpp
