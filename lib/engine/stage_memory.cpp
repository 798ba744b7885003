#include "engine/stage_memory.hpp"

#include <algorithm>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "base/median.hpp"
#include "comm/collective.hpp"

namespace vpp {

namespace {

/// Of the stage's own parameters, and of copies of tied ones whose gradients do not leave with each microbatch.
int64_t gradient_bytes(const Phase& phase, int stage) {
    std::vector<int> parameters = phase.split.stages[static_cast<size_t>(stage)].parameters;
    for (const Edge& edge : phase.split.edges) {
        if (edge.is_tied() && edge.consumer == stage && !edge.has_gradient) parameters.push_back(edge.parameter);
    }
    int64_t bytes = 0;
    for (int parameter : parameters) {
        const GraphParameter& entry = phase.graph.parameters[static_cast<size_t>(parameter)];
        if (entry.requires_grad) bytes += entry.bytes();
    }
    return bytes;
}

MemoryModel edges_model(const Phase& phase) {
    MemoryModel model;
    for (const Edge& edge : phase.split.edges) model.bytes_of_edge[edge.id] = edge.message_bytes;
    return model;
}

/// The gradients that a stage makes for others in each microbatch, less those that come to it and are used up.
int64_t gradients_left(const Phase& phase, int stage) {
    int64_t left = 0;
    for (const ScheduleEdge& edge : schedule_edges(phase.split)) {
        if (!edge.has_gradient) continue;
        const int64_t bytes = phase.split.edges[static_cast<size_t>(edge.id)].message_bytes;
        if (edge.consumer == stage) left += bytes;
        if (edge.gradient_to == stage) left -= bytes;
    }
    return left;
}

/// What actions of one kind took, while they ran and afterwards: the median over the microbatches, since messages come
/// and go meanwhile.
class Growth {
  public:
    void add(const ActionMemory& memory, int64_t known) {
        during_.push_back(memory.peak - memory.before - known);
        left_.push_back(memory.after - memory.before - known);
    }
    bool is_known() const { return !left_.empty(); }
    int64_t during() const { return is_known() ? median(during_) : 0; }
    int64_t left() const { return is_known() ? median(left_) : 0; }

  private:
    std::vector<int64_t> during_, left_;
};

}  // namespace

StageMemory measure_stage(const Phase& phase, int pp_rank, int stage, const std::vector<ActionMemory>& memory) {
    const std::vector<Action>& actions = phase.schedule.actions[static_cast<size_t>(pp_rank)];
    check(actions.size() == memory.size(), "the memory of every action is known");
    StageMemory measured;
    measured.sums = measured.weight_gradient = gradient_bytes(phase, stage);
    Growth forward, backward, input, weight;
    bool has_sums = false;
    for (size_t i = 0; i < actions.size(); ++i) {
        if (actions[i].stage != stage || !is_computing(actions[i].kind)) continue;
        // The first result becomes the sum.
        const bool is_first = gives_weight_gradient(actions[i].kind) && !has_sums;
        has_sums = has_sums || is_first;
        const ActionKind kind = actions[i].kind;
        Growth& growth = kind == ActionKind::F   ? forward
                         : kind == ActionKind::B ? backward
                         : kind == ActionKind::I ? input
                                                 : weight;
        growth.add(memory[i], is_first ? measured.sums : 0);
    }
    // What backward gives back is what forward kept: behind F some of its memory still waits to be sent.
    const int64_t given_back = input.is_known() ? input.left() + weight.left() : backward.left();
    measured.activation = gradients_left(phase, stage) - given_back;
    measured.extra_in_forward = forward.during() - measured.activation;
    measured.gradient_buffer = std::max(backward.during(), input.during());
    if (!input.is_known()) return measured;
    measured.weight_part = -weight.left() - measured.gradient_buffer;
    measured.extra_in_weight = weight.during();
    return measured;
}

MemoryEvent measure_memory(Transport& transport, const Program& program, const Executor& executor,
                           const Schedule& simulated) {
    const Phase& phase = program.training;
    const int pp_rank = program.mesh.coordinate(transport.rank()).pp;
    ByteWriter writer;
    writer.put(executor.bytes_before());
    writer.put(executor.activation_bytes());
    for (int stage : program.stages_of(pp_rank)) {
        writer.put(measure_stage(phase, pp_rank, stage, executor.memory_by_op()));
    }
    MemoryEvent event;
    const std::vector<Bytes> shares = gather(transport, writer.take());
    if (shares.empty()) return event;
    MemoryModel model = edges_model(phase);
    model.stages.resize(phase.split.stages.size());
    for (size_t rank = 0; rank < shares.size(); ++rank) {
        ByteReader reader(shares[rank]);
        MemoryEvent::Rank& entry = event.ranks.emplace_back();
        entry.state_bytes = reader.get<int64_t>();
        entry.activation_bytes = reader.get<int64_t>();
        for (int stage : program.stages_of(program.mesh.coordinate(static_cast<int>(rank)).pp)) {
            model.stages[static_cast<size_t>(stage)] = reader.get<StageMemory>();
        }
    }
    const std::vector<ScheduleEdge> edges = schedule_edges(phase.split);
    const std::vector<int64_t> least = peak_memory(simulated, edges, model);
    model.buffers = message_buffers(executor.device().is_cuda());
    const std::vector<int64_t> most = peak_memory(simulated, edges, model);
    for (size_t rank = 0; rank < event.ranks.size(); ++rank) {
        const auto pp = static_cast<size_t>(program.mesh.coordinate(static_cast<int>(rank)).pp);
        event.ranks[rank].least_simulated_bytes = least[pp];
        event.ranks[rank].most_simulated_bytes = most[pp];
    }
    return event;
}

}  // namespace vpp
