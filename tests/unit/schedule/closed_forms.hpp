#pragma once
// Holds generated schedules against closed forms: whole ticks, no tolerance.
#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "schedule/request.hpp"
#include "unit/schedule/support.hpp"

namespace vpp::testing {

inline std::string text_of(const ScheduleSize& size) {
    return "P " + std::to_string(size.num_ranks) + " v " + std::to_string(size.stages_per_rank) + " M " +
           std::to_string(size.num_microbatches);
}

/// P = 2..16 with M = P, 2P, 4P and two other numbers from `least(P)` on, at least one of them odd.
inline std::vector<ScheduleSize> closed_form_sizes(int fewest_per_rank, int most_per_rank,
                                                   const std::function<int(int)>& least) {
    std::vector<ScheduleSize> sizes;
    for (int P = 2; P <= 16; ++P) {
        for (int v = fewest_per_rank; v <= most_per_rank; ++v) {
            const int odd = least(P) | 1;
            const int drawn = least(P) + static_cast<int>(combine_key(P, v) % static_cast<uint64_t>(3 * P));
            for (int M : {P, 2 * P, 4 * P, odd, drawn}) {
                if (M >= least(P)) sizes.push_back({P, v, M});
            }
        }
    }
    return sizes;
}

/// Costs of one stage: equal ones, W the cheapest, W the dearest, and two at random.
inline std::vector<StageCosts> closed_form_costs(uint64_t seed) {
    uint64_t key = mix64(seed);
    const auto draw = [&] { return static_cast<Ticks>(1 + (key = mix64(key)) % 20); };
    std::vector<StageCosts> costs{{1, 2, 1, 1}, {5, 11, 7, 4}, {3, 13, 4, 9}};
    for (int i = 0; i < 2; ++i) {
        const Ticks forward = draw(), input = draw(), weight = draw();
        costs.push_back({forward, input + weight, input, weight});
    }
    return costs;
}

/// The closed forms of one schedule. Bubbles are in the times of one stage: those of a full rank over v.
struct ClosedForms {
    std::function<Ticks(int P, const StageCosts&)> makespan_bubble;
    std::function<std::optional<Ticks>(int P, const StageCosts&)> span_bubble;
    std::function<int(const ScheduleSize&, int rank)> peak;  ///< stage activations
};

inline void expect_closed_forms(Schedule (*make)(const ScheduleRequest&), const ScheduleRequest& request,
                                const ClosedForms& forms) {
    const ScheduleSize& size = request.size;
    SCOPED_TRACE(text_of(size));
    const int P = size.num_ranks;
    const auto edges = chain_edges(size.num_stages());
    const Schedule lowered = lower(make(request), edges);
    const ScheduleFacts facts = check_schedule(lowered, edges);
    for (int rank = 0; rank < P; ++rank) {
        EXPECT_EQ(facts.peak_in_flight[static_cast<size_t>(rank)], forms.peak(size, rank)) << "rank " << rank;
    }
    for (const StageCosts& stage : closed_form_costs(combine_key(P, size.num_microbatches))) {
        ScheduleCosts costs;
        costs.stages.assign(static_cast<size_t>(size.num_stages()), stage);
        const Simulation simulation = simulate(lowered, costs);
        const Ticks ideal = Ticks{size.num_microbatches} * size.stages_per_rank * (stage.forward + stage.backward);
        const auto text = [&] {
            return "F " + std::to_string(stage.forward) + " I " + std::to_string(stage.input_gradient) + " W " +
                   std::to_string(stage.weight_gradient);
        };
        EXPECT_EQ(simulation.makespan - ideal, forms.makespan_bubble(P, stage)) << text();
        const std::optional<Ticks> span_bubble = forms.span_bubble(P, stage);
        if (span_bubble) {
            EXPECT_EQ(simulation.span - ideal, *span_bubble) << text();
        }
    }
}

/// (P-1)(T_F + T_B), the bubble of all schedules without a split backward.
inline Ticks fused_bubble(int P, const StageCosts& stage) {
    return (P - 1) * (stage.forward + stage.backward);
}

/// By how much the makespan, or the span, grows when every hop costs c instead of nothing.
struct Growth {
    Ticks makespan = 0;
    Ticks span = 0;
};

inline Growth growth_by_transfers(const Schedule& compute, const StageCosts& stage, Ticks transfer) {
    ScheduleCosts costs;
    costs.stages.assign(static_cast<size_t>(compute.num_stages()), stage);
    const Schedule lowered = lower(compute, chain_edges(compute.num_stages()));
    const Simulation without = simulate(lowered, costs);
    costs.transfer = transfer;
    const Simulation with = simulate(lowered, costs);
    return {with.makespan - without.makespan, with.span - without.span};
}

}  // namespace vpp::testing
