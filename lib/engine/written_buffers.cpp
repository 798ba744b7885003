#include "engine/written_buffers.hpp"

#include <ATen/ops/empty_like.h>

namespace vpp {

WrittenBuffers::WrittenBuffers(const Graph& graph, const Weights& weights) {
    for (int parameter : weights.held()) {
        const GraphParameter& entry = graph.parameters[static_cast<size_t>(parameter)];
        if (!entry.written) continue;
        const at::Tensor buffer = weights.at(parameter).detach();
        buffers_.emplace_back(buffer, at::empty_like(buffer));
    }
    remember();
}

void WrittenBuffers::remember() {
    for (const auto& [buffer, copy] : buffers_) copy.copy_(buffer);
}

void WrittenBuffers::put_back() {
    for (const auto& [buffer, copy] : buffers_) buffer.copy_(copy);
}

}  // namespace vpp
