#pragma once
// One microbatch through the model, op by op, to learn what the graph does not say: dtypes and shapes, gradient flags,
// and which values are one tensor. On the meta device first, where nothing is computed; where an op has no form there,
// and in the CPU's mixed precision, on the CPU with the file's weights and the first samples of the data (zeros where
// there are none): what looks at numbers need not take zeros, as no sequence may be 0 long. Shapes may follow them
// there.
#include <ATen/core/ivalue.h>

#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "data/fields.hpp"
#include "graph/forward_memory.hpp"
#include "graph/gradient_watch.hpp"
#include "graph/jit_graph.hpp"
#include "graph/op_trial.hpp"

namespace vpp {

/// Every value of the top level, as one microbatch left it. All tensors are alive, so identity is object identity.
struct ProbeResult {
    TrialValues values;
    GradientFlips gradient_flips;
    bool shapes_follow_data = false;  ///< or what is drawn: other microbatches may give other shapes
    std::vector<double> flops;        ///< by op, of products and their like (graph/flops.hpp)
    std::vector<OpMemory> memory;     ///< by op, as the meta device has it; empty where an op fails there
};

/// An input of the model without its samples dim.
struct ProbeInput {
    const torch::jit::Value* value = nullptr;
    Field field;
    std::function<void(std::span<std::byte> out)> read = {};  ///< the first samples; empty: zeros
};

/// `weight` gives a parameter's tensor, bytes included; asked for on the CPU only. In mixed precision dtypes are those
/// that `device`, where the model will run, gives its values.
/// Throws Error{BadData} naming op and FQN when an op fails on both devices.
ProbeResult probe(const JitGraph& jit, const std::vector<ProbeInput>& inputs, int64_t microbatch_size,
                  const std::function<at::Tensor(size_t parameter)>& weight, at::Device device = at::kCPU);

/// Whether a microbatch of another size goes through the ops on the meta device: nothing is computed, whatever fails.
bool shapes_fit(const JitGraph& jit, const std::vector<ProbeInput>& inputs, int64_t microbatch_size, at::Device device);

/// Those of `values` that hold tensors of one memory, in groups of two and more, each in the order of `values`.
std::vector<std::vector<const torch::jit::Value*>> values_in_one_memory(const ProbeResult& result,
                                                                        const std::vector<torch::jit::Value*>& values);

}  // namespace vpp
