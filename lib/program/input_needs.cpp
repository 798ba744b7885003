#include "program/input_needs.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "program/counted_targets.hpp"

namespace vpp {

namespace {

/// Inputs of the forward pass that takes most.
size_t most_at_once(const std::vector<InputNeed>& needs) {
    size_t most = 0, run = 0;
    for (size_t i = 0; i < needs.size(); ++i) {
        const bool goes_on =
            i > 0 && needs[i].replica == needs[i - 1].replica && needs[i].microbatch == needs[i - 1].microbatch;
        run = goes_on ? run + 1 : 1;
        most = std::max(most, run);
    }
    return most;
}

void add_forward_passes(const Phase& phase, int pp_rank, int replica, std::vector<InputNeed>& needs) {
    for (const Action& action : phase.schedule.actions[static_cast<size_t>(pp_rank)]) {
        if (action.kind != ActionKind::F) continue;
        const auto [begin, end] = phase.split.segments_of(action.stage);
        for (int i = begin; i < end; ++i) {
            for (int input : phase.split.segments[static_cast<size_t>(i)].inputs) {
                needs.push_back({0, replica, action.microbatch, input});
            }
        }
    }
}

/// Of the replicas [first, end).
void add_counted_targets(const Plan& plan, const Phase& phase, int pp_rank, int first, int end,
                         std::vector<InputNeed>& needs) {
    if (!plan.model.is_target_mean() || !phase.makes_losses(pp_rank)) return;
    const std::optional<CountedTargets> counted = find_counted_targets(phase.graph);
    check(counted.has_value(), "a mean over targets has some to count");
    for (int replica = first; replica < end; ++replica) {
        for (int microbatch = 0; microbatch < phase.schedule.num_microbatches; ++microbatch) {
            for (int input : counted->inputs) needs.push_back({0, replica, microbatch, input});
        }
    }
}

}  // namespace

std::vector<InputNeed> needs_of_step(const Plan& plan, const Program& program, int pp_rank, int first_replica) {
    std::vector<InputNeed> needs;
    add_counted_targets(plan, program.training, pp_rank, 0, program.num_replicas(), needs);
    for (int replica = program.replicas_per_rank - 1; replica >= 0; --replica) {
        add_forward_passes(program.training, pp_rank, first_replica + replica, needs);
    }
    return needs;
}

std::vector<InputNeed> needs_of_group(const Plan& plan, const Program& program, int pp_rank, int replica) {
    std::vector<InputNeed> needs;
    add_forward_passes(*program.evaluation, pp_rank, replica, needs);
    add_counted_targets(plan, *program.evaluation, pp_rank, replica, replica + 1, needs);
    return needs;
}

int64_t bytes_of_input(const Program& program, const Graph& graph, int input) {
    const int field = program.fields.find(graph.inputs[static_cast<size_t>(input)].name);
    if (field < 0) return 0;
    return program.fields.fields[static_cast<size_t>(field)].bytes_per_sample() * program.microbatch_size;
}

int64_t largest_run_bytes(const Program& program, const Graph& graph, const std::vector<InputNeed>& needs,
                          size_t length) {
    if (needs.empty()) return 0;
    std::vector<int64_t> bytes;
    for (const InputNeed& need : needs) bytes.push_back(bytes_of_input(program, graph, need.input));
    int64_t run = 0;
    for (size_t i = 0; i < length; ++i) run += bytes[i % bytes.size()];
    int64_t largest = run;
    for (size_t i = 0; i < bytes.size(); ++i) {
        run += bytes[(i + length) % bytes.size()] - bytes[i];
        largest = std::max(largest, run);
    }
    return largest;
}

size_t num_inputs_ahead(const Program& program, const Graph& graph, const std::vector<InputNeed>& needs,
                        int64_t limit_bytes) {
    if (limit_bytes == 0) return 0;
    size_t fewest = most_at_once(needs), most = needs.size();
    while (fewest < most) {
        const size_t middle = (fewest + most + 1) / 2;
        if (largest_run_bytes(program, graph, needs, middle) <= limit_bytes) {
            fewest = middle;
        } else {
            most = middle - 1;
        }
    }
    return fewest;
}

}  // namespace vpp
