#include "engine/replica_optimizer.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "optim/memory_order.hpp"

namespace vpp {

namespace {

/// "h.0.w" of "h.0.w.exp_avg"
std::string parameter_name_of(const std::string& state_name) {
    return state_name.substr(0, state_name.rfind('.'));
}

/// A step count, which every owner of a part has.
bool is_count(const at::Tensor& slot) {
    return slot.dim() == 0;
}

}  // namespace

ReplicaOptimizer::ReplicaOptimizer(const Plan& plan, const Graph& graph, const std::vector<ReplicaShares>& shares,
                                   const Weights& weights, const std::vector<int>& trained, Transport& transport,
                                   std::vector<int> replicas)
    : plan_(plan),
      graph_(graph),
      shares_(shares),
      weights_(weights),
      trained_(trained),
      transport_(transport),
      replicas_(std::move(replicas)),
      is_zero1_(plan.mesh.zero1),
      writers_(find_writers(shares)),
      pieces_(replicas_.size()) {
    own_ = place_of(transport.rank(), replicas_);
    for (const ReplicaShares& group : shares) {
        for (size_t i = 0; i < pieces_.size(); ++i) {
            pieces_[i].insert(pieces_[i].end(), group.by_replica[i].begin(), group.by_replica[i].end());
        }
    }
    std::vector<TrainedParameter> updated;
    if (is_shared()) {
        for (const Piece& piece : pieces_[own_]) {
            elements_.push_back(elements_of(weights.at(piece.parameter), piece));
            updated.push_back({name_of(piece.parameter), elements_.back()});
        }
    } else {
        for (int parameter : trained_) updated.push_back({name_of(parameter), weights.at(parameter)});
    }
    optimizer_ = std::make_unique<Optimizer>(plan.optimizer, std::move(updated));
}

const std::string& ReplicaOptimizer::name_of(int parameter) const {
    return graph_.parameters[static_cast<size_t>(parameter)].name;
}

int ReplicaOptimizer::writer_of(int parameter) const {
    const auto found = writers_.find(parameter);
    return found == writers_.end() ? 0 : found->second;
}

std::vector<double> ReplicaOptimizer::learning_rates(int64_t step, int64_t total_steps) const {
    return optimizer_->learning_rates(plan_.lr_schedule, step, total_steps);
}

void ReplicaOptimizer::step(int64_t step, int64_t total_steps) {
    if (is_shared()) take_gradients();
    optimizer_->step(plan_.lr_schedule, step, total_steps);
    if (!is_shared()) return;
    // Views: they would keep the gradients' memory through the next step.
    for (at::Tensor& elements : elements_) elements.mutable_grad().reset();
    spread_parameters();
}

void ReplicaOptimizer::take_gradients() {
    for (size_t i = 0; i < elements_.size(); ++i) {
        const Piece& piece = pieces_[own_][i];
        const at::Tensor& parameter = weights_.at(piece.parameter);
        check_gradient(name_of(piece.parameter), parameter);
        elements_[i].mutable_grad() = elements_of(parameter.grad(), piece);
    }
}

/// Bucket by bucket, so that messages take little memory.
void ReplicaOptimizer::spread_parameters() const {
    const at::NoGradGuard no_grad;
    int number = 0;
    for (const ReplicaShares& group : shares_) {
        for (const std::vector<Pieces>& bucket : group.buckets) {
            const Channel channel = replica_channel(number++, ReplicaContent::Parameters);
            std::vector<PieceMessage> messages;
            for (const Pieces& pieces : bucket) {
                messages.emplace_back(graph_, pieces, place_of_parts(transport_, weights_.device()));
            }
            std::vector<at::Tensor> own;
            for (const Piece& piece : bucket[own_]) own.push_back(elements_of(weights_.at(piece.parameter), piece));
            transport_.exchange(exchange_of_own(replicas_, own_, channel, messages, own));
            const std::vector<Buffer> received = receive_all(transport_, replicas_, own_, channel);
            for (size_t i = 0; i < replicas_.size(); ++i) {
                if (i == own_) continue;
                const std::vector<at::Tensor> updated = messages[i].read(received[i]);
                for (size_t k = 0; k < updated.size(); ++k) {
                    elements_of(weights_.at(bucket[i][k].parameter), bucket[i][k]).copy_(updated[k]);
                }
            }
        }
    }
    transport_.finish_sends();
}

std::vector<StateTensor> ReplicaOptimizer::state() const {
    if (!is_shared()) return optimizer_->state();
    std::map<int, std::vector<StateTensor>> own;  // slots of the own piece by parameter
    const std::vector<StateTensor> slots = optimizer_->state();
    for (size_t i = 0, next = 0; i < pieces_[own_].size(); ++i) {
        const int parameter = pieces_[own_][i].parameter;
        while (next < slots.size() && parameter_name_of(slots[next].name) == name_of(parameter)) {
            own[parameter].push_back(slots[next++]);
        }
    }
    for (const Piece& piece : pieces_[own_]) {
        if (writer_of(piece.parameter) != static_cast<int>(own_)) send_slots(piece, own[piece.parameter]);
    }
    std::vector<StateTensor> whole;
    for (const Piece& piece : pieces_[own_]) {
        if (writer_of(piece.parameter) == static_cast<int>(own_)) assemble(piece, own[piece.parameter], whole);
    }
    transport_.finish_sends();
    return whole;
}

std::vector<StateTensor> ReplicaOptimizer::saved_state() const {
    std::vector<StateTensor> saved = state();
    if (is_shared()) return saved;
    std::set<std::string> own;
    for (int parameter : trained_) {
        if (writer_of(parameter) == static_cast<int>(own_)) own.insert(name_of(parameter));
    }
    std::erase_if(saved, [&](const StateTensor& entry) { return !own.contains(parameter_name_of(entry.name)); });
    return saved;
}

/// The slots of a piece that have its form, for the one who saves the parameter.
void ReplicaOptimizer::send_slots(const Piece& piece, const std::vector<StateTensor>& slots) const {
    std::vector<at::Tensor> elements;
    for (const StateTensor& slot : slots) {
        if (!is_count(slot.tensor)) elements.push_back(slot.tensor);
    }
    if (elements.empty()) return;
    const PieceMessage message(graph_, Pieces(elements.size(), piece));
    transport_.send(replicas_[static_cast<size_t>(writer_of(piece.parameter))],
                    replica_channel(piece.parameter, ReplicaContent::State), message.make(elements));
}

void ReplicaOptimizer::assemble(const Piece& own, const std::vector<StateTensor>& slots,
                                std::vector<StateTensor>& whole) const {
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> parts;  // those that have the form of the parameter
    for (const StateTensor& slot : slots) {
        const bool is_part = !is_count(slot.tensor);
        whole.push_back({slot.name, slot.tensor});
        if (!is_part) continue;
        whole.back().tensor = at::empty_like(weights_.at(own.parameter).detach(), at::MemoryFormat::Preserve);
        parts.push_back(whole.back().tensor);
        elements_of(parts.back(), own).copy_(slot.tensor);
    }
    if (parts.empty()) return;
    const Channel channel = replica_channel(own.parameter, ReplicaContent::State);
    for (size_t i = 0; i < replicas_.size(); ++i) {
        const auto piece = std::find_if(pieces_[i].begin(), pieces_[i].end(),
                                        [&](const Piece& other) { return other.parameter == own.parameter; });
        if (i == own_ || piece == pieces_[i].end()) continue;
        const PieceMessage message(graph_, Pieces(parts.size(), *piece));
        transport_.post_receive(replicas_[i], channel, message.size_bytes());
        const std::vector<at::Tensor> elements = message.read(transport_.receive(replicas_[i], channel));
        for (size_t k = 0; k < parts.size(); ++k) elements_of(parts[k], *piece).copy_(elements[k]);
    }
}

int64_t ReplicaOptimizer::full_state_bytes() const {
    return is_shared() || own_ == 0 ? optimizer_->full_state_bytes() : 0;
}

void ReplicaOptimizer::load_state(const StateReader& read) {
    if (!is_shared()) return optimizer_->load_state(read);
    std::map<std::string, Piece> piece_of;
    for (const Piece& piece : pieces_[own_]) piece_of[name_of(piece.parameter)] = piece;
    optimizer_->load_state([&](const std::string& name, at::ScalarType dtype,
                               const std::vector<int64_t>& shape) -> std::optional<at::Tensor> {
        if (shape.empty()) return read(name, dtype, shape);
        const Piece& piece = piece_of.at(parameter_name_of(name));
        const at::Tensor parameter = weights_.at(piece.parameter).detach();
        const std::optional<at::Tensor> saved = read(name, dtype, parameter.sizes().vec());
        if (!saved || parameter.is_contiguous()) return saved ? std::optional(elements_of(*saved, piece)) : saved;
        // The saved bytes are row-major; the piece counts in the order of the parameter's memory.
        const at::NoGradGuard no_grad;
        return elements_of(at::empty_like(parameter, at::MemoryFormat::Preserve).copy_(*saved), piece);
    });
}

}  // namespace vpp
