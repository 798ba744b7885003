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
        if (entry.written && size > 0) buffers.push_back({parameter, 0, size});
    }
    return buffers;
}

}  // namespace

ReplicaBuffers::ReplicaBuffers(const Graph& graph, const Weights& weights, Transport& transport,
                               std::vector<int> replicas)
    : weights_(weights),
      transport_(transport),
      replicas_(std::move(replicas)),
      own_(place_of(transport.rank(), replicas_)),
      buffers_(written_buffers(graph, weights)) {
    const auto place = place_of_parts(transport, weights.device());
    for (size_t i = 0; i < replicas_.size(); ++i) messages_.emplace_back(graph, i == 0 ? buffers_ : Pieces{}, place);
}

void ReplicaBuffers::follow_first() {
    if (buffers_.empty()) return;
    const at::NoGradGuard no_grad;
    const Channel channel = replica_channel(0, ReplicaContent::Buffers);
    std::vector<at::Tensor> values;
    for (const Piece& buffer : buffers_) values.push_back(elements_of(weights_.at(buffer.parameter), buffer));
    const bool is_first = own_ == 0;
    const std::vector<at::Tensor> own = is_first ? values : std::vector<at::Tensor>();
    transport_.exchange(exchange_of_own(replicas_, own_, channel, messages_, own));
    const std::vector<Buffer> received = receive_all(transport_, replicas_, own_, channel);
    transport_.finish_sends();
    if (is_first) return;
    const std::vector<at::Tensor> first = messages_[0].read(received[0]);
    for (size_t i = 0; i < values.size(); ++i) values[i].copy_(first[i]);
}

}  // namespace vpp
