#include "engine/executor.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "stage/message.hpp"

namespace vpp {

namespace {

// Receives that stand ready ahead of the action that waits for them. Each holds a buffer, so few; two directions of two
// neighbours can be under way at once.
constexpr int kPostedAhead = 4;

Channel channel_of(const Action& action) {
    const bool backward = action.kind == ActionKind::SendB || action.kind == ActionKind::RecvB;
    return {action.edge, action.microbatch, backward ? Direction::Backward : Direction::Forward};
}

/// Ops on received memory keep their autograd identity apart from the sender's.
at::Tensor as_input(const at::Tensor& tensor) {
    return tensor.detach();
}

}  // namespace

std::string describe(const Action& action) {
    const std::string stage = "stage " + std::to_string(action.stage) + ", ";
    const std::string microbatch = " of microbatch " + std::to_string(action.microbatch);
    switch (action.kind) {
        case ActionKind::F:
            return stage + "F" + microbatch;
        case ActionKind::B:
            return stage + "B" + microbatch;
        case ActionKind::I:
            return stage + "I" + microbatch;
        case ActionKind::W:
            return stage + "W" + microbatch;
        case ActionKind::SendF:
            return stage + "SEND_F" + microbatch;
        case ActionKind::RecvF:
            return stage + "RECV_F" + microbatch;
        case ActionKind::SendB:
            return stage + "SEND_B" + microbatch;
        case ActionKind::RecvB:
            return stage + "RECV_B" + microbatch;
        case ActionKind::ReduceGrad:
            return stage + "REDUCE_GRAD";
    }
    return stage;
}

Executor::Executor(const Phase& phase, Source& source, const Weights& weights, const StageOptions& options,
                   Transport& transport, std::vector<int> pipeline, int pp_rank, bool overlap)
    : phase_(phase),
      transport_(transport),
      pipeline_(std::move(pipeline)),
      pp_rank_(pp_rank),
      overlap_(overlap),
      stages_(static_cast<size_t>(phase.split.num_stages())) {
    for (int index : phase.schedule.stages_of(pp_rank)) {
        stages_[static_cast<size_t>(index)] =
            std::make_unique<Stage>(phase.graph, phase.split, index, source, weights, options);
    }
}

void Executor::run(const MicrobatchSource& source) {
    posted_ = 0;
    outstanding_ = 0;
    peak_parked_bytes_ = 0;
    losses_.clear();
    for (const auto& stage : stages_) {
        if (!stage) continue;
        stage->begin_step();
        if (stage->io().makes_loss) losses_.resize(static_cast<size_t>(phase_.schedule.num_microbatches));
    }
    const std::vector<Action>& actions = phase_.schedule.actions[static_cast<size_t>(pp_rank_)];
    for (size_t i = 0; i < actions.size(); ++i) {
        if (overlap_) post_receives(i);
        const std::string position = describe(actions[i]);
        transport_.set_position(position);
        try {
            run_action(actions[i], source);
        } catch (const Error& error) {
            throw Error(error.kind(), position + ": " + error.what());
        }
    }
    transport_.finish_sends();
}

void Executor::run_action(const Action& action, const MicrobatchSource& source) {
    switch (action.kind) {
        case ActionKind::F:
            return forward(action, source);
        case ActionKind::B:
        case ActionKind::I:
        case ActionKind::W:
            return backward(action);
        case ActionKind::SendF:
        case ActionKind::SendB:
            return send(action);
        case ActionKind::RecvF:
        case ActionKind::RecvB:
            return receive(action);
        case ActionKind::ReduceGrad:
            check(false, "gradients of one replica are not reduced");
    }
}

void Executor::forward(const Action& action, const MicrobatchSource& source) {
    Stage& now = stage(action.stage);
    for (int input : phase_.split.stages[static_cast<size_t>(action.stage)].inputs) {
        now.set_input(action.microbatch, input, source.input(action.microbatch, input));
    }
    now.forward(action.microbatch, source.key(action.microbatch));
    if (now.io().makes_loss) losses_[static_cast<size_t>(action.microbatch)] = now.take_loss(action.microbatch);
    for (int edge_id : now.io().exports) {
        const Edge& edge = phase_.split.edges[static_cast<size_t>(edge_id)];
        if (is_here(edge.consumer)) hand_over(edge, action.microbatch);
    }
}

void Executor::backward(const Action& action) {
    Stage& now = stage(action.stage);
    if (action.kind == ActionKind::B) now.backward(action.microbatch);
    if (action.kind == ActionKind::I) now.input_gradients(action.microbatch);
    if (action.kind == ActionKind::W) now.weight_gradients(action.microbatch);
    peak_parked_bytes_ = std::max(peak_parked_bytes_, now.parked_bytes());
    for (const Edge& edge : phase_.split.edges) {
        const bool made = edge.is_tied() ? gives_weight_gradient(action.kind) : gives_input_gradient(action.kind);
        const bool gives = made && edge.consumer == action.stage && edge.has_gradient;
        if (gives && is_here(edge.gradient_to)) hand_back(edge, action.microbatch);
    }
}

void Executor::hand_over(const Edge& edge, int microbatch) {
    Stage& from = stage(edge.producer);
    Stage& to = stage(edge.consumer);
    if (edge.is_bundle()) return to.receive_values(microbatch, edge, from.take_values(microbatch, edge));
    const at::Tensor tensor = from.take_tensor(microbatch, edge);
    to.receive_tensor(microbatch, edge, as_input(tensor), tensor.requires_grad());
}

void Executor::hand_back(const Edge& edge, int microbatch) {
    stage(edge.gradient_to).add_gradient(microbatch, edge, stage(edge.consumer).take_gradient(microbatch, edge));
}

void Executor::send(const Action& action) {
    const Edge& edge = edge_of(action);
    const auto limit = static_cast<size_t>(edge.message_bytes);
    Buffer message;
    if (action.kind == ActionKind::SendB) {
        message = encode_tensor(stage(action.stage).take_gradient(action.microbatch, edge), limit, edge.name);
    } else if (!edge.is_bundle()) {
        message = encode_tensor(stage(action.stage).take_tensor(action.microbatch, edge), limit, edge.name);
    } else {
        message = encode_values(stage(action.stage).take_values(action.microbatch, edge), limit, edge.name);
    }
    transport_.send(pipeline_[static_cast<size_t>(action.peer)], channel_of(action), std::move(message));
    if (!overlap_) transport_.finish_sends();
}

void Executor::receive(const Action& action) {
    if (!overlap_) post(action);
    const Edge& edge = edge_of(action);
    const Buffer message = transport_.receive(pipeline_[static_cast<size_t>(action.peer)], channel_of(action));
    --outstanding_;
    if (edge.is_bundle()) return stage(action.stage).receive_values(action.microbatch, edge, decode_values(message));
    ReceivedTensor received = decode_tensor(message, edge.name);
    if (action.kind == ActionKind::RecvB) {
        stage(action.stage).add_gradient(action.microbatch, edge, std::move(received.tensor));
    } else {
        stage(action.stage).receive_tensor(action.microbatch, edge, std::move(received.tensor), received.requires_grad);
    }
}

void Executor::post_receives(size_t position) {
    const std::vector<Action>& actions = phase_.schedule.actions[static_cast<size_t>(pp_rank_)];
    posted_ = std::max(posted_, position);
    for (; posted_ < actions.size() && outstanding_ < kPostedAhead; ++posted_) {
        if (is_receive(actions[posted_].kind)) post(actions[posted_]);
    }
}

void Executor::post(const Action& action) {
    transport_.post_receive(pipeline_[static_cast<size_t>(action.peer)], channel_of(action),
                            static_cast<size_t>(edge_of(action).message_bytes));
    ++outstanding_;
}

Stage& Executor::stage(int index) {
    check(is_here(index), "an action names a stage of its rank");
    return *stages_[static_cast<size_t>(index)];
}

bool Executor::is_here(int stage_index) const {
    return stages_[static_cast<size_t>(stage_index)] != nullptr;
}

const Edge& Executor::edge_of(const Action& action) const {
    return phase_.split.edges.at(static_cast<size_t>(action.edge));
}

}  // namespace vpp
