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

/// Walks a rank's actions: activations of a stage live from its F to its B.
int64_t peak_activation_bytes(const Program& program, int rank) {
    int64_t now = 0, peak = 0;
    for (const Action& action : program.training.schedule.actions[static_cast<size_t>(rank)]) {
        const int64_t bytes = program.training.split.stages[static_cast<size_t>(action.stage)].activation_bytes;
        if (action.kind == ActionKind::F) now += bytes;
        if (gives_weight_gradient(action.kind)) now -= bytes;
        peak = std::max(peak, now);
    }
    return peak;
}

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
        estimate.activation_bytes = peak_activation_bytes(program, rank);
        estimate.sent_bytes = sent_bytes(program, rank);
        ranks.push_back(std::move(estimate));
    }
    return ranks;
}

}  // namespace vpp
