#include "engine/replica_buffers.hpp"

#include <ATen/core/grad_mode.h>

#include <utility>

namespace vpp {

namespace {

Pieces written_buffers(const Graph& graph, const Weights& weights) {
    Pieces buffers;
    for (int parameter : weights.owned()) {
        const GraphParameter& entry = graph.parameters[static_cast<size_t>(parameter)];
        const int64_t size = num_elements(entry.shape);
        if (entry.is_buffer && entry.written && size > 0) buffers.push_back({parameter, 0, size});
    }
    return buffers;
}

}  // namespace

ReplicaBuffers::ReplicaBuffers(const Graph& graph, const Weights& weights, Transport& transport,
                               std::vector<int> replicas)
    : weights_(weights),
      transport_(transport),
      replicas_(std::move(replicas)),
      buffers_(written_buffers(graph, weights)),
      message_(graph, buffers_, place_of_parts(transport, weights.device())) {}

void ReplicaBuffers::follow_first() {
    if (buffers_.empty()) return;
    const at::NoGradGuard no_grad;
    const Channel channel = replica_channel(0, ReplicaContent::Buffers);
    std::vector<at::Tensor> own;
    for (const Piece& buffer : buffers_) own.push_back(elements_of(weights_.at(buffer.parameter), buffer));
    if (transport_.rank() == replicas_.front()) {
        for (size_t i = 1; i < replicas_.size(); ++i) transport_.send(replicas_[i], channel, message_.make(own));
        transport_.finish_sends();
        return;
    }
    transport_.post_receive(replicas_.front(), channel, message_.size_bytes());
    const std::vector<at::Tensor> first = message_.read(transport_.receive(replicas_.front(), channel));
    for (size_t i = 0; i < own.size(); ++i) own[i].copy_(first[i]);
}

}  // namespace vpp
