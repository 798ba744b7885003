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
    const auto own = std::find(replicas_.begin(), replicas_.end(), transport.rank());
    check(own != replicas_.end(), "this rank is one of the replicas");
    own_ = static_cast<size_t>(own - replicas_.begin());
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
        active_.push_back({&bucket, false, std::vector<bool>(replicas_.size(), false)});
        for (size_t i = 0; i < replicas_.size(); ++i) {
            if (i == own_) continue;
            if (!bucket.pieces[own_].empty()) {
                transport_.post_receive(replicas_[i], replica_channel(bucket.number, ReplicaContent::Gradients),
                                        bucket.messages[own_].size_bytes());
            }
            if (bucket.pieces[i].empty()) continue;
            transport_.post_receive(replicas_[i], replica_channel(bucket.number, ReplicaContent::Sums),
                                    bucket.messages[i].size_bytes());
            transport_.send(replicas_[i], replica_channel(bucket.number, ReplicaContent::Gradients),
                            bucket.messages[i].make(gradients_of(bucket.pieces[i])));
        }
    }
}

void GradientReduction::advance() {
    InOrder in_order{true, std::vector<bool>(replicas_.size(), true)};
    for (Active& active : active_) move_on(active, in_order, /*waits=*/false);
    active_.remove_if([this](const Active& active) { return is_done(active); });
    activate_next();
}

void GradientReduction::finish() {
    const auto start = Clock::now();
    while (!active_.empty()) {
        const Bucket& first = *active_.front().bucket;
        transport_.set_position("reducing the gradients of " +
                                (first.stage >= 0 ? "stage " + std::to_string(first.stage) : "tied parameters") +
                                ", bucket " + std::to_string(first.number));
        InOrder first_of_all{true, std::vector<bool>(replicas_.size(), true)};
        move_on(active_.front(), first_of_all, /*waits=*/true);
        advance();
    }
    absent_.clear();
    exposed_seconds_ += seconds_since(start);
}

double GradientReduction::take_exposed_seconds() {
    return std::exchange(exposed_seconds_, 0);
}

/// Shares that are empty on a small bucket have nothing to wait for.
bool GradientReduction::is_done(const Active& active) const {
    for (size_t i = 0; i < replicas_.size(); ++i) {
        if (active.bucket->pieces[i].empty()) continue;
        if (i == own_ ? !active.is_summed : !active.has_sums[i]) return false;
    }
    return true;
}

bool GradientReduction::have_gradients_arrived(const Active& active) const {
    const Channel channel = replica_channel(active.bucket->number, ReplicaContent::Gradients);
    for (size_t i = 0; i < replicas_.size(); ++i) {
        if (i != own_ && !transport_.has_arrived(replicas_[i], channel)) return false;
    }
    return true;
}

void GradientReduction::move_on(Active& active, InOrder& in_order, bool waits) {
    const Bucket& bucket = *active.bucket;
    if (!active.is_summed && !bucket.pieces[own_].empty()) {
        in_order.adds = in_order.adds && (waits || have_gradients_arrived(active));
        if (in_order.adds) add_up(active);
    }
    const Channel channel = replica_channel(bucket.number, ReplicaContent::Sums);
    for (size_t i = 0; i < replicas_.size(); ++i) {
        if (i == own_ || active.has_sums[i] || bucket.pieces[i].empty()) continue;
        in_order.takes[i] = in_order.takes[i] && (waits || transport_.has_arrived(replicas_[i], channel));
        if (in_order.takes[i]) take_sums(active, i);
    }
}

void GradientReduction::add_up(Active& active) {
    const at::NoGradGuard no_grad;
    const Bucket& bucket = *active.bucket;
    const Channel channel = replica_channel(bucket.number, ReplicaContent::Gradients);
    std::vector<at::Tensor> sums(bucket.pieces[own_].size());
    for (size_t i = 0; i < replicas_.size(); ++i) {
        const std::vector<at::Tensor> gradients =
            i == own_ ? gradients_of(bucket.pieces[own_])
                      : bucket.messages[own_].read(transport_.receive(replicas_[i], channel), weights_.device());
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
    for (size_t i = 0; i < replicas_.size(); ++i) {
        if (i == own_) continue;
        transport_.send(replicas_[i], replica_channel(bucket.number, ReplicaContent::Sums),
                        bucket.messages[own_].make(sums));
    }
    active.is_summed = true;
}

void GradientReduction::take_sums(Active& active, size_t replica) {
    const Bucket& bucket = *active.bucket;
    const Channel channel = replica_channel(bucket.number, ReplicaContent::Sums);
    write(bucket.pieces[replica], bucket.messages[replica].read(transport_.receive(replicas_[replica], channel)));
    active.has_sums[replica] = true;
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
