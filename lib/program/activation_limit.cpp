#include "program/activation_limit.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/units.hpp"
#include "schedule/generators.hpp"
#include "schedule/placement.hpp"
#include "schedule/tied_order.hpp"

namespace vpp {

namespace {

/// What the fullest rank keeps of one microbatch.
int64_t fullest_rank(const Split& split, const ScheduleSize& size) {
    int64_t most = 0;
    for (Placement placement : {Placement::Loop, Placement::V}) {
        const std::vector<int> rank_of_stage = place_stages(placement, size);
        std::vector<int64_t> bytes(static_cast<size_t>(size.num_ranks), 0);
        for (size_t stage = 0; stage < split.stages.size(); ++stage) {
            bytes[static_cast<size_t>(rank_of_stage[stage])] += split.stages[stage].activation_bytes;
        }
        most = std::max(most, *std::max_element(bytes.begin(), bytes.end()));
    }
    return most;
}

/// The most that a rank holds at once: in activations of a full rank, and in bytes.
struct Peak {
    double activations = 0;
    int64_t bytes = 0;

    bool fits(const MemoryLimit& limit) const {
        return limit.bytes ? bytes <= *limit.bytes : activations <= *limit.activations;
    }
};

Peak peak_of(const Schedule& schedule, const Split& split) {
    Peak peak;
    const std::vector<int> held = peak_in_flight(schedule);
    for (int rank = 0; rank < schedule.num_ranks; ++rank) {
        const auto num_stages = static_cast<double>(schedule.stages_of(rank).size());
        const auto index = static_cast<size_t>(rank);
        if (num_stages > 0) peak.activations = std::max(peak.activations, held[index] / num_stages);
        int64_t bytes = 0;
        for (const Action& action : schedule.actions[index]) {
            const int64_t of_stage = split.stages[static_cast<size_t>(action.stage)].activation_bytes;
            if (action.kind == ActionKind::F) bytes += of_stage;
            if (gives_weight_gradient(action.kind)) bytes -= of_stage;
            peak.bytes = std::max(peak.bytes, bytes);
        }
    }
    return peak;
}

std::string text_of(const MemoryLimit& limit) {
    return limit.bytes ? exact_bytes_text(*limit.bytes) : fixed_text(*limit.activations, 2);
}

/// The schedules that a plan may name and that keep to the limit with as many stages.
std::vector<std::string> fitting_schedules(const Plan& plan, const Split& split, const ScheduleCosts& costs,
                                           const ScheduleSize& size) {
    const std::vector<ScheduleEdge> edges = schedule_edges(split);
    std::vector<std::string> fitting;
    for (const std::string& name : schedule_names()) {
        const ScheduleKind& kind = *find_schedule_kind(name);
        if (*kind.same_as || size.stages_per_rank < kind.fewest_per_rank || size.stages_per_rank > kind.most_per_rank) {
            continue;
        }
        try {
            const Schedule made =
                make_schedule(name, {.size = size, .memory_limit = activation_limit(plan, split, size)});
            if (peak_of(order_tied(made, edges, costs), split).fits(*plan.pipeline.memory_limit))
                fitting.push_back(name);
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::Plan) throw;
        }
    }
    return fitting;
}

}  // namespace

std::optional<double> activation_limit(const Plan& plan, const Split& split, const ScheduleSize& size) {
    const std::optional<MemoryLimit>& limit = plan.pipeline.memory_limit;
    if (!limit) return std::nullopt;
    if (!limit->bytes) return limit->activations;
    const int64_t fullest = fullest_rank(split, size);
    if (fullest == 0) return std::nullopt;
    if (*limit->bytes >= fullest) return static_cast<double>(*limit->bytes) / static_cast<double>(fullest);
    throw Error(ErrorKind::Plan,
                "pipeline.memory_limit is less than the activations of one microbatch on a rank (got " +
                    text_of(*limit) + ", expected at least " + exact_bytes_text(fullest) + " = " + bytes_text(fullest) +
                    " with " + counted_text(size.stages_per_rank, "stage") +
                    " a rank); try a larger pipeline.num_microbatches, which makes them smaller",
                plan.where("pipeline.memory_limit"));
}

void check_activations(const Plan& plan, const Schedule& schedule, const Split& split, const ScheduleCosts& costs) {
    const std::optional<MemoryLimit>& limit = plan.pipeline.memory_limit;
    if (!limit) return;
    const Peak peak = peak_of(schedule, split);
    if (peak.fits(*limit)) return;
    const ScheduleSize size{schedule.num_ranks, schedule.num_stages() / schedule.num_ranks, schedule.num_microbatches};
    std::string fitting;
    for (const std::string& name : fitting_schedules(plan, split, costs, size)) fitting += '"' + name + "\", ";
    throw Error(ErrorKind::Plan,
                schedule.name + " is above pipeline.memory_limit: a rank holds the activations of " +
                    fixed_text(peak.activations, 2) + " microbatches, " + bytes_text(peak.bytes) + " at most (got " +
                    text_of(*limit) + ", expected at least " +
                    (limit->bytes ? exact_bytes_text(peak.bytes) : fixed_text(peak.activations, 2)) +
                    "); with as many stages a rank these fit: " + fitting + "\"AUTO\"",
                plan.where("pipeline.memory_limit"));
}

}  // namespace vpp
