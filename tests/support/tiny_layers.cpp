#include "support/tiny_layers.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "base/hash.hpp"
#include "data/synthetic.hpp"

namespace vpp::test {

using torch::jit::Module;

at::Tensor keyed(const std::string& name, const std::vector<int64_t>& shape, double scale) {
    at::Tensor tensor = at::empty(shape);
    auto* data = tensor.mutable_data_ptr<float>();
    const auto key = static_cast<int64_t>(hash_text(name).low >> 1);
    for (int64_t i = 0; i < tensor.numel(); ++i) {
        data[i] = static_cast<float>(scale * synthetic_normal(synthetic_bits(key, 0, i)));
    }
    return tensor;
}

void add_linear(Module& module, const std::string& index, int64_t outputs, int64_t inputs, bool trained) {
    module.register_parameter("w" + index, keyed("w" + index, {outputs, inputs}, 0.4).set_requires_grad(trained),
                              false);
    module.register_parameter("b" + index, keyed("b" + index, {outputs}, 0.2).set_requires_grad(trained), false);
}

void add_filter(Module& module, const std::string& index, int64_t outputs, int64_t inputs) {
    module.register_parameter("c" + index, keyed("c" + index, {outputs, inputs, 3, 3}, 0.3).set_requires_grad(true),
                              false);
}

void add_scale_and_offset(Module& module, const std::string& index, int64_t channels) {
    module.register_parameter("g" + index, at::ones({channels}).set_requires_grad(true), false);
    module.register_parameter("o" + index, at::zeros({channels}).set_requires_grad(true), false);
}

void add_batch_norm(Module& module, const std::string& index, int64_t channels) {
    add_scale_and_offset(module, index, channels);
    module.register_buffer("running_mean" + index, at::zeros({channels}));
    module.register_buffer("running_var" + index, at::ones({channels}));
    module.register_buffer("num_batches_tracked" + index, at::zeros({}, at::kLong));
}

Module new_module(const std::string& name, int num_linears) {
    Module module("tiny." + name);
    module.register_attribute("training", c10::BoolType::get(), true);
    for (int i = 1; i <= num_linears; ++i) add_linear(module, std::to_string(i), 8, 8);
    return module;
}

}  // namespace vpp::test
