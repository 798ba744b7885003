#include "program/estimate.hpp"

#include <algorithm>
#include <map>

#include "plan/optimizer_groups.hpp"
#include "plan/optimizer_rules.hpp"
#include "program/activation_memory.hpp"
#include "program/input_needs.hpp"
#include "program/replica_shares.hpp"

namespace vpp {

namespace {

/// Of the tensors that a segment makes for others, each once.
int64_t output_bytes(const Split& split, int segment) {
    std::map<int, int64_t> bytes;  // by tensor
    for (const Edge& edge : split.edges) {
        if (edge.tensor >= 0 && edge.segments.producer == segment) bytes[edge.tensor] = edge.bytes;
    }
    int64_t sum = 0;
    for (const auto& [tensor, tensor_bytes] : bytes) sum += tensor_bytes;
    return sum;
}

/// Microbatches of a stage that are under way at once, at most.
struct UnderWay {
    int now = 0, most = 0;
    void begin() { most = std::max(most, ++now); }
};

/// For each segment as many recordings as microbatches are under way in it at once (stage/recordings.hpp). Of one that
/// is recomputed as many as are between the halves of a backward, and one for a last microbatch that is not recomputed;
/// the others leave nothing in the memory in which all such segments work.
int64_t recorded_bytes(const Split& split, const std::vector<Action>& actions, bool is_last_recomputed) {
    std::map<int, UnderWay> whole, halves;  // by stage
    for (const Action& action : actions) {
        if (action.kind == ActionKind::F) whole[action.stage].begin();
        if (action.kind == ActionKind::I) halves[action.stage].begin();
        if (action.kind == ActionKind::B || action.kind == ActionKind::W) --whole[action.stage].now;
        if (action.kind == ActionKind::W) --halves[action.stage].now;
    }
    int64_t bytes = 0, shared = 0;
    for (const auto& [stage, under_way] : whole) {
        const int between_halves = halves[stage].most;
        const auto [begin, end] = split.segments_of(stage);
        for (int i = begin; i < end; ++i) {
            const SegmentSpec& segment = split.segments[static_cast<size_t>(i)];
            const int64_t waiting = between_halves > 0 ? segment.waiting_bytes : 0;
            const int64_t working = std::max(segment.working_bytes, segment.passing_bytes);
            const int64_t recording = std::max(segment.activation_bytes, waiting) + working;
            if (segment.recompute) {
                const int num_kept = between_halves + (is_last_recomputed ? 0 : 1);
                const int64_t comes_and_goes = 2 * (segment.input_bytes + output_bytes(split, i));
                bytes += under_way.most * segment.input_bytes + num_kept * recording;
                shared = std::max(shared, segment.kept_bytes + working + comes_and_goes);
            } else {
                bytes += under_way.most * recording;
            }
        }
    }
    return bytes + shared;
}

int64_t sent_bytes(const Program& program, int rank) {
    int64_t sent = 0;
    for (const Action& action : program.training.schedule.actions[static_cast<size_t>(rank)]) {
        if (is_send(action.kind)) sent += program.training.split.edges[static_cast<size_t>(action.edge)].bytes;
    }
    return sent;
}

/// What replicas share among them.
class ReplicaEstimate {
  public:
    ReplicaEstimate(const Plan& plan, const Program& program, const std::vector<int>& stages)
        : graph_(program.training.graph),
          optimizer_(plan.optimizer),
          num_replicas_(program.mesh.dp),
          is_zero1_(plan.mesh.zero1 && num_replicas_ > 1),
          shares_(find_shares(graph_, program.training.split, stages, num_replicas_, plan.mesh.bucket_bytes)) {
        share_bytes_.resize(static_cast<size_t>(num_replicas_));
        state_bytes_.resize(static_cast<size_t>(num_replicas_));
        for (const ReplicaShares& group : shares_) {
            for (size_t i = 0; i < share_bytes_.size(); ++i) {
                share_bytes_[i] += bytes_of(graph_, group.by_replica[i]);
                for (const Piece& piece : group.by_replica[i]) {
                    state_bytes_[i] += bytes_of(graph_, {piece}) * states_of(piece.parameter);
                }
            }
        }
    }

    bool is_zero1() const { return is_zero1_; }
    /// The optimizer's state of the replica that has most, where each has that of its share.
    int64_t most_state_bytes() const { return *std::max_element(state_bytes_.begin(), state_bytes_.end()); }

    /// Of a step: the others' shares of the gradients go to their owners, the sums of the own one to all others, and
    /// with ZeRO-1 the updated parameters too.
    int64_t sent_bytes() const {
        int64_t all = 0, most = 0;
        for (int64_t share : share_bytes_) all += share;
        for (int64_t share : share_bytes_) {
            most = std::max(most, all - share + share * (num_replicas_ - 1) * (is_zero1_ ? 2 : 1));
        }
        return num_replicas_ > 1 ? most : 0;
    }

    /// What the replica saves that saves most.
    int64_t saved_bytes(const Split& split, const std::vector<int>& stages) const {
        const std::map<int, int> writers = find_writers(shares_);
        std::vector<int64_t> saved(share_bytes_.size(), 0);
        for (int stage : stages) {
            for (int parameter : split.stages[static_cast<size_t>(stage)].parameters) {
                const auto writer = writers.find(parameter);
                const int64_t bytes = graph_.parameters[static_cast<size_t>(parameter)].bytes();
                const bool is_trained = writer != writers.end();
                saved[static_cast<size_t>(is_trained ? writer->second : 0)] +=
                    bytes * (is_trained ? 1 + states_of(parameter) : 1);
            }
        }
        return *std::max_element(saved.begin(), saved.end());
    }

  private:
    int states_of(int parameter) const {
        return optimizer_state_tensors(optimizer_, graph_.parameters[static_cast<size_t>(parameter)].name);
    }

    const Graph& graph_;
    const OptimizerPlan& optimizer_;
    int num_replicas_;
    bool is_zero1_;
    std::vector<ReplicaShares> shares_;
    std::vector<int64_t> share_bytes_, state_bytes_;  ///< by replica
};

}  // namespace

int optimizer_state_tensors(const OptimizerPlan& optimizer, const std::string& parameter) {
    const OptimizerValues& values = values_of(optimizer, parameter);
    return optimizer_kind(optimizer.kind).state_tensors(values);
}

std::vector<RankEstimate> estimate_ranks(const Plan& plan, const Program& program) {
    const ActivationMemory activations(plan, program.training.graph, program.training.split);
    std::vector<RankEstimate> ranks;
    for (int rank = 0; rank < program.mesh.pp; ++rank) {
        RankEstimate estimate;
        estimate.stages = program.stages_of(rank);
        estimate.ranks = program.mesh.replicas_of(program.mesh.rank({rank, 0, 0}));
        for (int index : estimate.stages) {
            const StageSpec& stage = program.training.split.stages[static_cast<size_t>(index)];
            estimate.parameter_bytes += stage.parameter_bytes;
            estimate.buffer_bytes += stage.buffer_bytes;
            const auto [begin, end] = program.training.split.segments_of(index);
            for (int i = begin; i < end; ++i) {
                estimate.cast_bytes += program.training.split.segments[static_cast<size_t>(i)].cast_bytes;
            }
            estimate.flops += stage.flops * program.training.schedule.num_microbatches;
            for (int parameter : stage.parameters) {
                const GraphParameter& entry = program.training.graph.parameters[static_cast<size_t>(parameter)];
                if (!entry.requires_grad) continue;
                estimate.gradient_bytes += entry.bytes();
                estimate.unshared_optimizer_bytes +=
                    entry.bytes() * optimizer_state_tensors(plan.optimizer, entry.name);
            }
        }
        const ReplicaEstimate replicas(plan, program, estimate.stages);
        estimate.optimizer_bytes =
            replicas.is_zero1() ? replicas.most_state_bytes() : estimate.unshared_optimizer_bytes;
        estimate.replica_bytes = replicas.sent_bytes();
        if (plan.checkpoint.background) {
            estimate.saved_copy_bytes = replicas.saved_bytes(program.training.split, estimate.stages);
        }
        const Schedule& schedule = program.training.schedule;
        estimate.activation_bytes = activations.peak_bytes(schedule, static_cast<size_t>(rank));
        estimate.recorded_bytes = recorded_bytes(program.training.split, schedule.actions[static_cast<size_t>(rank)],
                                                 !plan.pipeline.recompute.except_last);
        const std::vector<InputNeed> needs = needs_of_step(plan, program, rank, 0);
        const Graph& graph = program.training.graph;
        const size_t ahead = num_inputs_ahead(program, graph, needs, plan.data.read_ahead_bytes);
        estimate.input_bytes = largest_run_bytes(program, graph, needs, ahead);
        estimate.sent_bytes = sent_bytes(program, rank);
        ranks.push_back(std::move(estimate));
    }
    return ranks;
}

double step_flops(const Program& program) {
    constexpr double kBackwardAndForward = 3;
    double forward = 0;
    for (const StageSpec& stage : program.training.split.stages) forward += stage.flops;
    return kBackwardAndForward * forward * program.training.schedule.num_microbatches * program.num_replicas();
}

}  // namespace vpp
