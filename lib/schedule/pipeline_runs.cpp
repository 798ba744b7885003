#include "schedule/pipeline_runs.hpp"

#include "base/error.hpp"

namespace vpp {

namespace {

void append_run(const std::vector<Action>& run, int first_microbatch, bool is_last, std::vector<Action>& list) {
    for (Action action : run) {
        if (action.kind == ActionKind::ReduceGrad) {
            if (is_last) list.push_back(action);
            continue;
        }
        action.microbatch += first_microbatch;
        list.push_back(action);
    }
}

}  // namespace

Schedule repeat_runs(const Schedule& run, int runs) {
    check(runs >= 1, "a step has pipeline runs");
    Schedule step = run;
    step.num_microbatches = run.num_microbatches * runs;
    for (size_t rank = 0; rank < run.actions.size(); ++rank) {
        std::vector<Action>& list = step.actions[rank];
        list.clear();
        list.reserve(run.actions[rank].size() * static_cast<size_t>(runs));
        for (int k = 0; k < runs; ++k) append_run(run.actions[rank], k * run.num_microbatches, k == runs - 1, list);
    }
    return step;
}

}  // namespace vpp
