#pragma once
// A step that was never run: the simulator's times as if a clock had measured them.
#include <algorithm>

#include "schedule/generators.hpp"
#include "schedule/measured_step.hpp"
#include "unit/schedule/support.hpp"

namespace vpp::testing {

inline Schedule lowered_schedule(const std::string& name, int ranks, int per_rank, int microbatches) {
    const Schedule compute = make_schedule(name, ranks, per_rank, microbatches);
    return lower(compute, chain_edges(compute.num_stages()));
}

/// A tick is so many nanoseconds; the step begins at `begin` on a common clock. A receive waits from its start to the
/// end of the simulated one and then reads for `read` more, which delays nobody.
inline MeasuredStep measured(const Schedule& lowered, int64_t tick = 1'000'000, int64_t begin = 5'000'000'000,
                             int64_t read = 0) {
    const Simulation simulation = simulate(lowered);
    MeasuredStep step;
    step.step = 12;
    for (size_t pp = 0; pp < lowered.actions.size(); ++pp) {
        MeasuredRank& rank = step.ranks.emplace_back();
        rank.pp = static_cast<int>(pp);
        for (size_t i = 0; i < lowered.actions[pp].size(); ++i) {
            const ActionTime& time = simulation.times[pp][i];
            const bool receives = is_receive(lowered.actions[pp][i].kind);
            ActionSpan span{begin + tick * time.start, begin + tick * time.end, 0};
            if (receives) span.wait = span.end - span.begin, span.end += read;
            rank.actions.push_back(span);
        }
        rank.moments = {begin, begin + tick * simulation.makespan, begin + tick * (simulation.makespan + 1),
                        begin + tick * (simulation.makespan + 2)};
    }
    return step;
}

}  // namespace vpp::testing
