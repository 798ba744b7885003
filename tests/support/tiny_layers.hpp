#pragma once
// Layers that the tiny models are put together from (tiny_models.hpp), with the names that their code uses.
#include <ATen/core/Tensor.h>
#include <torch/csrc/jit/api/module.h>

#include <string>
#include <vector>

namespace vpp::test {

/// Bell-shaped numbers that depend on the name alone.
at::Tensor keyed(const std::string& name, const std::vector<int64_t>& shape, double scale);

/// Parameters w<index> [outputs, inputs] and b<index>.
void add_linear(torch::jit::Module& module, const std::string& index, int64_t outputs, int64_t inputs,
                bool trained = true);

/// Parameter c<index> [outputs, inputs, 3, 3].
void add_filter(torch::jit::Module& module, const std::string& index, int64_t outputs, int64_t inputs);

/// Parameters g<index> of ones and o<index> of zeros.
void add_scale_and_offset(torch::jit::Module& module, const std::string& index, int64_t channels);

/// The same with running_mean<index>, running_var<index> and num_batches_tracked<index>.
void add_batch_norm(torch::jit::Module& module, const std::string& index, int64_t channels);

/// With trained layers "1", "2", ... of 8 features.
torch::jit::Module new_module(const std::string& name, int num_linears = 0);

}  // namespace vpp::test
