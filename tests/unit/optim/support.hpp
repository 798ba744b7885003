#pragma once
// What the tests of optimizers share: tiny tensors, their bits, and training by hand-made gradients.
#include <ATen/core/Tensor.h>
#include <ATen/ops/tensor.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace vpp::test {

inline at::Tensor doubles(const std::vector<double>& values) {
    return at::tensor(values, at::kDouble);
}
inline at::Tensor floats(const std::vector<float>& values) {
    return at::tensor(values, at::kFloat);
}

inline at::Tensor leaf(const at::Tensor& tensor) {
    return tensor.set_requires_grad(true);
}

inline std::vector<double> values_of(const at::Tensor& tensor) {
    const at::Tensor wide = tensor.detach().to(at::kDouble).contiguous();
    return {wide.const_data_ptr<double>(), wide.const_data_ptr<double>() + wide.numel()};
}

/// The bytes of a tensor in row-major order.
inline std::string bits_of(const at::Tensor& tensor) {
    const at::Tensor dense = tensor.detach().contiguous();
    return {static_cast<const char*>(dense.const_data_ptr()), dense.nbytes()};
}

/// The exit code of the error that a call throws; 0 without one.
inline int code_of(const std::function<void()>& call, std::string* text = nullptr) {
    try {
        call();
    } catch (const Error& error) {
        if (text) *text = error.what();
        return exit_code(error.kind());
    }
    return 0;
}

}  // namespace vpp::test
