#include "graph/stage_borders.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace vpp {

namespace {

/// The number of the first op at or behind each stage's beginning.
std::vector<int> first_ops(const Graph& graph, const std::vector<StagePlan>& stages) {
    std::vector<int> first(stages.size(), graph.num_ops());
    int current = 0;
    for (int op = 0; op < graph.num_ops(); ++op) {
        current = std::max(current, stage_of_module(stages, graph.ops[static_cast<size_t>(op)].module));
        for (int stage = 0; stage <= current; ++stage) {
            first[static_cast<size_t>(stage)] = std::min(first[static_cast<size_t>(stage)], op);
        }
    }
    return first;
}

}  // namespace

int stage_of_module(const std::vector<StagePlan>& stages, const std::string& module) {
    for (size_t stage = 0; stage < stages.size(); ++stage) {
        const auto holds = [&](const std::string& outer) { return lies_in(module, outer); };
        const bool own = stages[stage].modules.empty() ? holds(stages[stage].name)
                                                       : std::ranges::any_of(stages[stage].modules, holds);
        if (own) return static_cast<int>(stage);
    }
    return -1;
}

std::vector<int> stage_borders(const Graph& graph, const Plan& plan) {
    const std::vector<StagePlan>& stages = plan.pipeline.stages;
    const std::vector<int> first = first_ops(graph, stages);
    std::vector<Problem> problems;
    const auto add = [&](size_t stage, const std::string& message) {
        problems.push_back({message, plan.where("pipeline.stage[" + std::to_string(stage) + "]")});
    };
    for (size_t stage = 0; stage < stages.size(); ++stage) {
        const int end = stage + 1 < stages.size() ? first[stage + 1] : graph.num_ops();
        if (first[stage] == end) {
            add(stage, "the stage '" + stages[stage].name + "' computes nothing that is needed; leave it out");
        } else if (stage > 0 && !graph.cuts[static_cast<size_t>(first[stage])].legal) {
            add(stage, "the model cannot be cut between the stages '" + stages[stage - 1].name + "' and '" +
                           stages[stage].name + "': " + graph.cuts[static_cast<size_t>(first[stage])].reason);
        }
    }
    if (!problems.empty()) throw Error(ErrorKind::Plan, std::move(problems));
    return {first.begin() + 1, first.end()};
}

}  // namespace vpp
