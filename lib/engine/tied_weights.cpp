#include "engine/tied_weights.hpp"

#include <ATen/core/grad_mode.h>

#include <set>

#include "stage/message.hpp"

namespace vpp {

TiedWeights::TiedWeights(const Split& split, const Schedule& schedule, const Weights& weights, Transport& transport,
                         std::vector<int> pipeline)
    : weights_(weights), transport_(transport) {
    std::set<std::pair<int, int>> known;  // parameter, rank
    for (const Edge& edge : split.edges) {
        if (!edge.is_tied()) continue;
        const int owner = schedule.rank_of_stage[static_cast<size_t>(edge.producer)];
        const int user = schedule.rank_of_stage[static_cast<size_t>(edge.consumer)];
        if (owner == user || !known.emplace(edge.parameter, user).second) continue;
        copies_.push_back({{edge.id, 0, Direction::Forward},
                           edge.parameter,
                           pipeline[static_cast<size_t>(owner)],
                           pipeline[static_cast<size_t>(user)],
                           static_cast<size_t>(edge.message_bytes)});
    }
}

void TiedWeights::refresh() {
    const at::NoGradGuard no_grad;
    for (const Copy& copy : copies_) {
        if (copy.to == transport_.rank()) transport_.post_receive(copy.from, copy.channel, copy.message_bytes);
        if (copy.from != transport_.rank()) continue;
        transport_.send(copy.to, copy.channel,
                        encode_tensor(weights_.at(copy.parameter), copy.message_bytes, "a copy"));
    }
    for (const Copy& copy : copies_) {
        if (copy.to != transport_.rank()) continue;
        const ReceivedTensor owner = decode_tensor(transport_.receive(copy.from, copy.channel), "a copy");
        at::Tensor(weights_.at(copy.parameter)).copy_(owner.tensor);
    }
    transport_.finish_sends();
}

}  // namespace vpp
