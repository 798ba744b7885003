#include "examples/layers.hpp"

#include <cmath>

namespace vpp {

using enum NewParameter::Values;

ScriptedModule linear(int64_t in, int64_t out) {
    const double bound = 1 / std::sqrt(static_cast<double>(in));
    return {"Linear",
            "def forward(self, x):\n    return torch.linear(x, self.weight, self.bias)\n",
            {{"weight", {out, in}, Uniform, bound}, {"bias", {out}, Uniform, bound}}};
}

ScriptedModule conv3x3(int64_t in, int64_t out) {
    const double bound = 1 / std::sqrt(static_cast<double>(9 * in));
    return {"Conv2d",
            "def forward(self, x):\n    return torch.conv2d(x, self.weight, self.bias, [1, 1], [1, 1])\n",
            {{"weight", {out, in, 3, 3}, Uniform, bound}, {"bias", {out}, Uniform, bound}}};
}

ScriptedModule layer_norm(int64_t width) {
    return {"LayerNorm",
            "def forward(self, x):\n    return torch.layer_norm(x, [" + std::to_string(width) +
                "], self.weight, self.bias, 1e-05, True)\n",
            {{"weight", {width}, Ones}, {"bias", {width}, Zeros}}};
}

ScriptedModule embedding(int64_t rows, int64_t width, double deviation) {
    return {"Embedding",
            "def forward(self, indices):\n    return torch.embedding(self.weight, indices)\n",
            {{"weight", {rows, width}, Normal, deviation}}};
}

}  // namespace vpp
