#pragma once
// The layers of the examples' models, as torch.nn writes and begins them. Letters: n samples.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "graph/scripted_module.hpp"

namespace vpp {

/// [..., in] -> [..., out]; weight and bias begin as torch.nn.Linear's: uniform within 1 / sqrt(in).
ScriptedModule linear(int64_t in, int64_t out);
/// [n, in, h, w] -> [n, out, h, w] with 3x3 kernels, as torch.nn.Conv2d(in, out, 3, padding=1).
ScriptedModule conv3x3(int64_t in, int64_t out);
/// [..., width], as torch.nn.LayerNorm(width).
ScriptedModule layer_norm(int64_t width);
/// int64 [...] -> [..., width]; normal with this deviation (torch.nn.Embedding: 1, GPT-2: 0.02).
ScriptedModule embedding(int64_t rows, int64_t width, double deviation);

}  // namespace vpp
