#include "schedule/memory.hpp"

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "schedule/edges.hpp"
#include "schedule/messages.hpp"

namespace vpp {

namespace {

/// What goes in and out of one stage besides its own memory, in each microbatch.
struct StageBuffers {
    int64_t values_received = 0;   ///< until F has them
    int64_t gradients_taken = 0;   ///< until B or I has them: received, or handed over on the rank
    int64_t tied_taken = 0;        ///< until B or W
    int64_t gradients_handed = 0;  ///< by B or I, to stages on the same rank
    int64_t tied_handed = 0;       ///< by B or W
};

/// A message that a rank receives: when it is sent, and where its RECV stands.
struct Incoming {
    Ticks sent = 0;
    size_t received_at = 0;
    int64_t bytes = 0;
};

/// What every rank receives, in the order in which it is sent.
std::vector<std::vector<Incoming>> incoming_messages(const Schedule& lowered, const MemoryModel& model,
                                                     const Simulation& simulation) {
    const MessageNumbers number(lowered);
    std::vector<Ticks> sent(number.size(), 0);
    const auto for_each = [&](auto wanted, auto visit) {
        for (size_t rank = 0; rank < lowered.actions.size(); ++rank) {
            for (size_t k = 0; k < lowered.actions[rank].size(); ++k) {
                if (wanted(lowered.actions[rank][k].kind)) visit(rank, k, lowered.actions[rank][k]);
            }
        }
    };
    for_each(is_send, [&](size_t rank, size_t k, const Action& action) {
        sent[number(action)] = simulation.times[rank][k].start;
    });
    std::vector<std::vector<Incoming>> incoming(lowered.actions.size());
    for_each(is_receive, [&](size_t rank, size_t k, const Action& action) {
        incoming[rank].push_back({sent[number(action)], k, model.of_edge(action.edge)});
    });
    for (std::vector<Incoming>& messages : incoming) {
        std::stable_sort(messages.begin(), messages.end(),
                         [](const Incoming& one, const Incoming& other) { return one.sent < other.sent; });
    }
    return incoming;
}

/// Adds to `during` what is sent to the rank before its RECV: to every action that ends after the message is sent.
void add_early(const std::vector<Incoming>& incoming, const std::vector<ActionTime>& times,
               std::vector<int64_t>& during) {
    std::vector<int64_t> changes(during.size() + 1, 0);  // at the begin of each action
    size_t k = 0;
    for (const Incoming& message : incoming) {
        while (k < times.size() && times[k].end <= message.sent) ++k;
        if (k >= message.received_at) continue;
        changes[k] += message.bytes;
        changes[message.received_at] -= message.bytes;
    }
    int64_t early = 0;
    for (size_t action = 0; action < during.size(); ++action) {
        early += changes[action];
        during[action] += early;
    }
}

void add_held(const Schedule& lowered, const MemoryModel& model, std::vector<std::vector<int64_t>>& by_rank) {
    const auto bytes_of_edge = [&](int edge) { return model.of_edge(edge); };
    const std::vector<std::vector<int64_t>> held = held_sends(lowered, model.buffers, bytes_of_edge);
    for (size_t rank = 0; rank < by_rank.size(); ++rank) {
        for (size_t k = 0; k < by_rank[rank].size(); ++k) by_rank[rank][k] += held[rank][k];
    }
}

class MemoryWalk {
  public:
    MemoryWalk(const Schedule& lowered, const std::vector<ScheduleEdge>& edges, const MemoryModel& model)
        : lowered_(lowered),
          model_(model),
          turns_(lowered.rank_of_stage.size()),
          buffers_(lowered.rank_of_stage.size()) {
        check(model.stages.empty() || model.stages.size() == lowered.rank_of_stage.size(),
              "every stage has a memory model");
        for (const Route& route : routes_of(edges, lowered.num_stages(), lowered.forward_only)) add_route(route);
    }

    std::vector<int64_t> run(size_t rank) {
        const std::vector<Action>& list = lowered_.actions[rank];
        now_ = 0;
        posted_ = outstanding_ = 0;
        sums_exist_.assign(lowered_.rank_of_stage.size(), false);
        for (int stage : lowered_.stages_of(static_cast<int>(rank))) now_ += model_.of_stage(stage).fixed;
        std::vector<int64_t> during;
        during.reserve(list.size());
        while (during.size() < list.size()) {
            const size_t first = during.size(), end = first + (list[first].paired ? 2 : 1);
            post_receives(list, first);
            for (size_t k = first; k < end; ++k) begin(list.at(k));
            during.resize(end, now_);
            for (size_t k = first; k < end; ++k) finish(list[k]);
        }
        return during;
    }

  private:
    /// Whose weight gradients are added next, and which results wait.
    struct Turn {
        int next = 0;
        std::set<int> parked;
    };

    void add_route(const Route& route) {
        const int64_t bytes = model_.of_edge(route.edge);
        StageBuffers &from = buffers_[static_cast<size_t>(route.from)], &to = buffers_[static_cast<size_t>(route.to)];
        const bool on_one_rank = lowered_.rank_of_stage[static_cast<size_t>(route.from)] ==
                                 lowered_.rank_of_stage[static_cast<size_t>(route.to)];
        if (!route.gradient) {
            if (!on_one_rank) to.values_received += bytes;
            return;
        }
        (route.tied ? to.tied_taken : to.gradients_taken) += bytes;
        if (on_one_rank) (route.tied ? from.tied_handed : from.gradients_handed) += bytes;
    }

    /// The executor's rule: receives have their buffers in the order of the list, so many at once.
    void post_receives(const std::vector<Action>& list, size_t position) {
        posted_ = std::max(posted_, position);
        for (; posted_ < list.size() && outstanding_ < model_.buffers.receives_ahead; ++posted_) {
            if (is_receive(list[posted_].kind)) post(list[posted_]);
        }
    }
    void post(const Action& action) {
        now_ += model_.of_edge(action.edge);
        ++outstanding_;
    }

    void begin(const Action& action) {
        const StageMemory stage = model_.of_stage(action.stage);
        if (is_receive(action.kind)) {
            if (model_.buffers.receives_ahead == 0) post(action);
            --outstanding_;
        }
        if (action.kind == ActionKind::F) now_ += stage.activation + stage.extra_in_forward;
        if (action.kind == ActionKind::W) now_ += stage.extra_in_weight;
        if (gives_input_gradient(action.kind)) now_ += stage.gradient_buffer;
        if (gives_weight_gradient(action.kind) && !sums_exist_[static_cast<size_t>(action.stage)]) {
            sums_exist_[static_cast<size_t>(action.stage)] = true;
            now_ += stage.sums;
        }
    }

    void finish(const Action& action) {
        const StageMemory stage = model_.of_stage(action.stage);
        const StageBuffers& buffers = buffers_[static_cast<size_t>(action.stage)];
        if (action.kind == ActionKind::W) now_ -= stage.extra_in_weight;
        if (action.kind == ActionKind::F) {
            now_ -= stage.extra_in_forward + buffers.values_received + (lowered_.forward_only ? stage.activation : 0);
        }
        if (gives_input_gradient(action.kind)) {
            now_ += buffers.gradients_handed - buffers.gradients_taken - (stage.activation - stage.weight_part);
        }
        if (gives_weight_gradient(action.kind)) {
            now_ += buffers.tied_handed - buffers.tied_taken - stage.weight_part - stage.gradient_buffer;
            now_ += stage.weight_gradient * take_turn(turns_[static_cast<size_t>(action.stage)], action.microbatch);
        }
    }

    /// How many more results wait than before.
    static int64_t take_turn(Turn& turn, int microbatch) {
        if (microbatch != turn.next) {
            turn.parked.insert(microbatch);
            return 1;
        }
        int64_t released = 0;
        for (++turn.next; turn.parked.erase(turn.next) > 0; ++turn.next) ++released;
        return -released;
    }

    const Schedule& lowered_;
    const MemoryModel& model_;
    std::vector<Turn> turns_;            ///< by stage
    std::vector<StageBuffers> buffers_;  ///< by stage
    int64_t now_ = 0;
    size_t posted_ = 0;  ///< receives before it have their buffers
    int outstanding_ = 0;
    std::vector<bool> sums_exist_;  ///< by stage
};

}  // namespace

int64_t MemoryModel::of_edge(int edge) const {
    const auto found = bytes_of_edge.find(edge);
    return found == bytes_of_edge.end() ? 0 : found->second;
}

std::vector<std::vector<int64_t>> memory_by_action(const Schedule& lowered, const std::vector<ScheduleEdge>& edges,
                                                   const MemoryModel& model, const Simulation* simulation) {
    MemoryWalk walk(lowered, edges, model);
    std::vector<std::vector<int64_t>> by_rank;
    for (size_t rank = 0; rank < lowered.actions.size(); ++rank) by_rank.push_back(walk.run(rank));
    if (model.buffers.sends_behind) add_held(lowered, model, by_rank);
    if (!simulation) return by_rank;
    const std::vector<std::vector<Incoming>> incoming = incoming_messages(lowered, model, *simulation);
    for (size_t rank = 0; rank < by_rank.size(); ++rank) {
        add_early(incoming[rank], simulation->times[rank], by_rank[rank]);
    }
    return by_rank;
}

std::vector<int64_t> peak_memory(const Schedule& lowered, const std::vector<ScheduleEdge>& edges,
                                 const MemoryModel& model, const Simulation* simulation) {
    std::vector<int64_t> peaks;
    for (const std::vector<int64_t>& during : memory_by_action(lowered, edges, model, simulation)) {
        peaks.push_back(during.empty() ? 0 : *std::max_element(during.begin(), during.end()));
    }
    return peaks;
}

}  // namespace vpp
