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
        copies_.push_back({edge.id, edge.parameter, pipeline[static_cast<size_t>(owner)],
                           pipeline[static_cast<size_t>(user)], static_cast<size_t>(edge.message_bytes),
                           !edge.has_gradient});
    }
}

void TiedWeights::sum_gradients() {
    const at::NoGradGuard no_grad;
    for (const Copy& copy : copies_) {
        if (!copy.keeps_gradient) continue;
        const Channel channel{copy.edge, 0, Direction::Backward};
        if (copy.to == transport_.rank()) {
            at::Tensor& sum = at::Tensor(weights_.at(copy.parameter)).mutable_grad();
            transport_.send(copy.from, channel, encode_tensor(sum, copy.message_bytes, "a tied gradient"));
            sum.reset();
        } else if (copy.from == transport_.rank()) {
            transport_.post_receive(copy.to, channel, copy.message_bytes);
            const at::Tensor theirs =
                decode_tensor(transport_.receive(copy.to, channel), "a tied gradient", weights_.device()).tensor;
            at::Tensor& sum = at::Tensor(weights_.at(copy.parameter)).mutable_grad();
            if (!theirs.defined()) continue;
            if (sum.defined())
                sum.add_(theirs);
            else
                sum = theirs.clone();
        }
    }
    transport_.finish_sends();
}

void TiedWeights::refresh() {
    const at::NoGradGuard no_grad;
    for (const Copy& copy : copies_) {
        const Channel channel{copy.edge, 0, Direction::Forward};
        if (copy.to == transport_.rank()) transport_.post_receive(copy.from, channel, copy.message_bytes);
        if (copy.from != transport_.rank()) continue;
        transport_.send(copy.to, channel, encode_tensor(weights_.at(copy.parameter), copy.message_bytes, "a copy"));
    }
    for (const Copy& copy : copies_) {
        if (copy.to != transport_.rank()) continue;
        const Channel channel{copy.edge, 0, Direction::Forward};
        const ReceivedTensor owner = decode_tensor(transport_.receive(copy.from, channel), "a copy");
        at::Tensor(weights_.at(copy.parameter)).copy_(owner.tensor);
    }
    transport_.finish_sends();
}

}  // namespace vpp
