#include "engine/gradient_reduction.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <utility>

#include "base/elapsed.hpp"
#include "base/error.hpp"
#include "optim/memory_order.hpp"

namespace vpp {

GradientReduction::GradientReduction(const Graph& graph, const std::vector<ReplicaShares>& shares,
                                     const Weights& weights, Transport& transport, std::vector<int> replicas)
    : graph_(graph), weights_(weights), transport_(transport), replicas_(std::move(replicas)) {
    own_ = place_of(transport.rank(), replicas_);
    for (const ReplicaShares& group : shares) {
        for (const std::vector<Pieces>& pieces : group.buckets) {
            check(pieces.size() == replicas_.size(), "every replica has a share of a bucket");
            Bucket& bucket = buckets_.emplace_back();
            bucket.number = static_cast<int>(buckets_.size()) - 1;
            bucket.stage = group.stage;
            bucket.pieces = pieces;
            for (const Pieces& share : pieces) {
                bucket.messages.emplace_back(graph, share, place_of_parts(transport, weights.device()));
            }
        }
    }
}

void GradientReduction::start(int stage) {
    for (const Bucket& bucket : buckets_) {
        if (bucket.stage != stage) continue;
        for (const Pieces& share : bucket.pieces) {
            for (const Piece& piece : share) {
                const at::Tensor& parameter = weights_.at(piece.parameter);
                check_gradient(graph_.parameters[static_cast<size_t>(piece.parameter)].name, parameter);
                // The sum of one piece makes the whole tensor, while others wait for their bucket.
                if (!parameter.grad().defined()) absent_.insert(piece.parameter);
            }
        }
        waiting_.push_back(&bucket);
    }
    activate_next();
}

void GradientReduction::activate_next() {
    for (; active_.size() < kMostActive && !waiting_.empty(); waiting_.pop_front()) {
        const Bucket& bucket = *waiting_.front();
        const Channel channel = replica_channel(bucket.number, ReplicaContent::Gradients);
        Exchange gradients{replicas_, channel, std::vector<Buffer>(replicas_.size()), {}};
        for (size_t i = 0; i < replicas_.size(); ++i) {
            const bool is_own = i == own_;
            gradients.expected.push_back(is_own ? MessageSize{} : bucket.messages[own_].size());
            if (!is_own) gradients.sent[i] = bucket.messages[i].make(gradients_of(bucket.pieces[i]));
        }
        transport_.exchange(std::move(gradients));
        active_.push_back({&bucket});
    }
}

void GradientReduction::advance() {
    for (Active& active : active_) {
        if (active.is_summed) continue;
        if (!has_arrived(*active.bucket, ReplicaContent::Gradients)) break;
        add_up(active);
    }
    while (!active_.empty() && active_.front().is_summed) {
        const Bucket& first = *active_.front().bucket;
        if (!has_arrived(first, ReplicaContent::Sums)) break;
        take_sums(first);
        active_.pop_front();
    }
    activate_next();
}

void GradientReduction::finish() {
    const auto start = Clock::now();
    while (!active_.empty()) {
        const Bucket& first = *active_.front().bucket;
        transport_.set_position("reducing the gradients of " +
                                (first.stage >= 0 ? "stage " + std::to_string(first.stage) : "tied parameters") +
                                ", bucket " + std::to_string(first.number));
        if (!active_.front().is_summed) add_up(active_.front());
        advance();  // to what has come of others, while the sums of the first are under way
        if (active_.empty() || active_.front().bucket != &first) continue;
        take_sums(first);
        active_.pop_front();
        activate_next();
    }
    absent_.clear();
    exposed_seconds_ += seconds_since(start);
}

double GradientReduction::take_exposed_seconds() {
    return std::exchange(exposed_seconds_, 0);
}

bool GradientReduction::has_arrived(const Bucket& bucket, ReplicaContent content) const {
    const Channel channel = replica_channel(bucket.number, content);
    for (size_t i = 0; i < replicas_.size(); ++i) {
        if (i != own_ && !transport_.has_arrived(replicas_[i], channel)) return false;
    }
    return true;
}

void GradientReduction::add_up(Active& active) {
    const at::NoGradGuard no_grad;
    const Bucket& bucket = *active.bucket;
    const PieceMessage& form = bucket.messages[own_];
    const std::vector<Buffer> received =
        receive_all(transport_, replicas_, own_, replica_channel(bucket.number, ReplicaContent::Gradients));
    std::vector<at::Tensor> sums(bucket.pieces[own_].size());
    for (size_t i = 0; i < replicas_.size(); ++i) {
        const std::vector<at::Tensor> gradients =
            i == own_ ? gradients_of(bucket.pieces[own_]) : form.read(received[i], weights_.device());
        for (size_t k = 0; k < sums.size(); ++k) {
            if (!gradients[k].defined()) continue;
            if (sums[k].defined()) {
                sums[k].add_(gradients[k]);
            } else {
                sums[k] = gradients[k].clone();
            }
        }
    }
    write(bucket.pieces[own_], sums);
    const Channel channel = replica_channel(bucket.number, ReplicaContent::Sums);
    transport_.exchange(exchange_of_own(replicas_, own_, channel, bucket.messages, sums));
    active.is_summed = true;
}

void GradientReduction::take_sums(const Bucket& bucket) {
    const std::vector<Buffer> received =
        receive_all(transport_, replicas_, own_, replica_channel(bucket.number, ReplicaContent::Sums));
    for (size_t i = 0; i < replicas_.size(); ++i) {
        if (i != own_) write(bucket.pieces[i], bucket.messages[i].read(received[i]));
    }
}

std::vector<at::Tensor> GradientReduction::gradients_of(const Pieces& pieces) const {
    std::vector<at::Tensor> elements;
    for (const Piece& piece : pieces) {
        const at::Tensor gradient =
            absent_.contains(piece.parameter) ? at::Tensor() : weights_.at(piece.parameter).grad();
        elements.push_back(elements_of(gradient, piece));
    }
    return elements;
}

void GradientReduction::write(const Pieces& pieces, const std::vector<at::Tensor>& sums) const {
    const at::NoGradGuard no_grad;
    for (size_t i = 0; i < pieces.size(); ++i) {
        if (!sums[i].defined()) continue;
        at::Tensor parameter = weights_.at(pieces[i].parameter);
        at::Tensor& gradient = parameter.mutable_grad();
        if (!gradient.defined()) gradient = at::empty_like(parameter.detach(), at::MemoryFormat::Preserve);
        elements_of(gradient, pieces[i]).copy_(sums[i]);
    }
}

}  // namespace vpp
