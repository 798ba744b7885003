#include "program/estimate.hpp"

#include <algorithm>
#include <map>

namespace vpp {

namespace {

/// Optimizer state tensors of a parameter's size.
int state_tensors(const OptimizerPlan& optimizer) {
    if (optimizer.kind == "sgd") return optimizer.values.momentum > 0 ? 1 : 0;
    return optimizer.values.amsgrad ? 3 : 2;
}

/// Walks a rank's actions: activations of a segment live from F to B or W; of a recomputed one the inputs do, and the
/// activations only while its backward runs.
class ActivationWalk {
  public:
    ActivationWalk(const Split& split, int recomputed_microbatches)
        : split_(split), recomputed_microbatches_(recomputed_microbatches) {}

    int64_t peak_bytes(const std::vector<Action>& actions) {
        for (const Action& action : actions) {
            if (!is_computing(action.kind)) continue;
            const auto [begin, end] = split_.segments_of(action.stage);
            const bool forward = action.kind == ActionKind::F;
            for (int i = 0; i < end - begin; ++i) {
                add(split_.segments[static_cast<size_t>(forward ? begin + i : end - 1 - i)], action);
            }
        }
        return peak_;
    }

  private:
    void add(const SegmentSpec& segment, const Action& action) {
        const bool again = segment.recompute && action.microbatch < recomputed_microbatches_;
        const int64_t whole = segment.activation_bytes, kept = again ? segment.input_bytes : whole;
        if (action.kind == ActionKind::F) change(whole, kept - whole);
        if (action.kind == ActionKind::I) change(whole - kept, 0);
        if (action.kind == ActionKind::W) change(0, -whole);
        if (action.kind == ActionKind::B) change(whole - kept, -whole);
    }

    /// Up, then down.
    void change(int64_t during, int64_t behind) {
        peak_ = std::max(peak_, now_ + during);
        now_ += during + behind;
    }

    const Split& split_;
    int recomputed_microbatches_;
    int64_t now_ = 0, peak_ = 0;
};

int64_t sent_bytes(const Program& program, int rank) {
    int64_t sent = 0;
    for (const Action& action : program.training.schedule.actions[static_cast<size_t>(rank)]) {
        if (is_send(action.kind)) sent += program.training.split.edges[static_cast<size_t>(action.edge)].bytes;
    }
    return sent;
}

}  // namespace

std::vector<RankEstimate> estimate_ranks(const Plan& plan, const Program& program) {
    std::vector<RankEstimate> ranks;
    for (int rank = 0; rank < program.mesh.pp; ++rank) {
        RankEstimate estimate;
        estimate.stages = program.stages_of(rank);
        for (int index : estimate.stages) {
            const StageSpec& stage = program.training.split.stages[static_cast<size_t>(index)];
            estimate.parameter_bytes += stage.parameter_bytes;
            estimate.buffer_bytes += stage.buffer_bytes;
            estimate.flops += stage.flops * program.training.schedule.num_microbatches;
            for (int parameter : stage.parameters) {
                const GraphParameter& entry = program.training.graph.parameters[static_cast<size_t>(parameter)];
                if (entry.requires_grad) estimate.gradient_bytes += entry.bytes();
            }
        }
        estimate.optimizer_bytes = estimate.gradient_bytes * state_tensors(plan.optimizer);
        if (plan.checkpoint.background) {
            estimate.saved_copy_bytes = estimate.parameter_bytes + estimate.buffer_bytes + estimate.optimizer_bytes;
        }
        const Schedule& schedule = program.training.schedule;
        const int recomputed = schedule.num_microbatches - (plan.pipeline.recompute.except_last ? 1 : 0);
        estimate.activation_bytes =
            ActivationWalk(program.training.split, recomputed).peak_bytes(schedule.actions[static_cast<size_t>(rank)]);
        estimate.sent_bytes = sent_bytes(program, rank);
        ranks.push_back(std::move(estimate));
    }
    return ranks;
}

}  // namespace vpp
