#include "program/activation_limit.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/units.hpp"
#include "plan/batch_size.hpp"
#include "schedule/placement.hpp"

namespace vpp {

namespace {

/// What the fullest rank keeps of one microbatch.
int64_t fullest_rank(const ActivationMemory& memory, const ScheduleSize& size) {
    int64_t most = 0;
    for (Placement placement : {Placement::Loop, Placement::V}) {
        const std::vector<int> rank_of_stage = place_stages(placement, size);
        std::vector<int64_t> bytes(static_cast<size_t>(size.num_ranks), 0);
        for (int stage = 0; stage < memory.num_stages(); ++stage) {
            bytes[static_cast<size_t>(rank_of_stage[static_cast<size_t>(stage)])] += memory.kept_bytes(stage);
        }
        most = std::max(most, *std::max_element(bytes.begin(), bytes.end()));
    }
    return most;
}

/// What one microbatch takes that is alone, its backward whole.
int64_t bytes_of_one(const ActivationMemory& memory, int num_ranks, const std::vector<int>& rank_of_stage) {
    return memory.peak_bytes(one_at_a_time(num_ranks, rank_of_stage, 1));
}

int64_t bytes_of_one(const ActivationMemory& memory, const ScheduleSize& size) {
    return std::min(bytes_of_one(memory, size.num_ranks, place_stages(Placement::Loop, size)),
                    bytes_of_one(memory, size.num_ranks, place_stages(Placement::V, size)));
}

std::string text_of(const MemoryLimit& limit) {
    return limit.bytes ? exact_bytes_text(*limit.bytes) : fixed_text(*limit.activations, 2);
}

/// What makes the activations of a microbatch fewer.
std::string remedy_for(const Plan& plan) {
    return samples_of_microbatch(plan) > 1
               ? "try a larger pipeline.num_microbatches, which makes microbatches smaller"
               : "microbatches have one sample already; try more stages, or pipeline.recompute.what = \"units\"";
}

void refuse_below(int64_t least, const Plan& plan, int stages_per_rank) {
    const MemoryLimit& limit = *plan.pipeline.memory_limit;
    if (!limit.bytes || *limit.bytes >= least) return;
    throw Error(ErrorKind::Plan,
                "pipeline.memory_limit is less than the activations of one microbatch on a rank, with the gradients "
                "of its backward (got " +
                    text_of(limit) + ", expected at least " + exact_bytes_text(least) + " = " + bytes_text(least) +
                    " with " + counted_text(stages_per_rank, "stage") + " a rank); " + remedy_for(plan),
                plan.where("pipeline.memory_limit"));
}

/// The most that a rank holds at once, over its stages.
double peak_activations(const Schedule& schedule) {
    const std::vector<int> held = peak_in_flight(schedule);
    double peak = 0;
    for (int rank = 0; rank < schedule.num_ranks; ++rank) {
        const auto num_stages = static_cast<double>(schedule.stages_of(rank).size());
        if (num_stages > 0) peak = std::max(peak, held[static_cast<size_t>(rank)] / num_stages);
    }
    return peak;
}

std::string fitting_text(const Plan& plan, const std::vector<FittingSchedule>& fitting) {
    if (fitting.empty()) return "; with as many stages a rank no schedule fits; " + remedy_for(plan);
    std::string text;
    for (const FittingSchedule& one : fitting) {
        text += (text.empty() ? "" : ", ") + ('"' + one.name + "\" (") + bytes_text(one.bytes) + ')';
    }
    return "; with as many stages a rank these fit: " + text;
}

}  // namespace

std::optional<double> activation_limit(const Plan& plan, const ActivationMemory& memory, const ScheduleSize& size) {
    const std::optional<MemoryLimit>& limit = plan.pipeline.memory_limit;
    if (!limit) return std::nullopt;
    if (!limit->bytes) return limit->activations;
    refuse_below(bytes_of_one(memory, size), plan, size.stages_per_rank);
    const int64_t fullest = fullest_rank(memory, size);
    if (fullest == 0) return std::nullopt;
    return std::max(1.0, static_cast<double>(*limit->bytes) / static_cast<double>(fullest));
}

std::optional<double> safe_limit(const Plan& plan, const ActivationMemory& memory, const ScheduleSize& size,
                                 bool with_halves) {
    const std::optional<MemoryLimit>& limit = plan.pipeline.memory_limit;
    if (!limit || !limit->bytes) return std::nullopt;
    const int64_t of_stage = std::max<int64_t>(1, memory.most_kept_bytes(with_halves));
    const int64_t num_held = (*limit->bytes - memory.most_working_bytes(with_halves)) / of_stage;
    if (num_held < size.stages_per_rank) return std::nullopt;
    return static_cast<double>(num_held) / size.stages_per_rank;
}

Schedule one_at_a_time(int num_ranks, const std::vector<int>& rank_of_stage, int num_microbatches) {
    Schedule schedule{"", num_ranks, num_microbatches, rank_of_stage, {}};
    schedule.actions.resize(static_cast<size_t>(num_ranks));
    const auto add = [&](ActionKind kind, int stage, int microbatch) {
        const int rank = rank_of_stage[static_cast<size_t>(stage)];
        schedule.actions[static_cast<size_t>(rank)].push_back({kind, stage, microbatch});
    };
    for (int microbatch = 0; microbatch < num_microbatches; ++microbatch) {
        for (int stage = 0; stage < schedule.num_stages(); ++stage) add(ActionKind::F, stage, microbatch);
        for (int stage = schedule.num_stages(); stage-- > 0;) add(ActionKind::B, stage, microbatch);
    }
    return schedule;
}

bool keeps_to_limit(const Plan& plan, const Schedule& schedule, const ActivationMemory& memory) {
    const std::optional<MemoryLimit>& limit = plan.pipeline.memory_limit;
    if (!limit) return true;
    return limit->bytes ? memory.peak_bytes(schedule) <= *limit->bytes
                        : peak_activations(schedule) <= *limit->activations;
}

Schedule within_limit(const Plan& plan, const ActivationMemory& memory, const ScheduleSize& size,
                      const std::function<Schedule(std::optional<double>)>& make) {
    const std::optional<double> loosest = activation_limit(plan, memory, size);
    Schedule made = make(loosest);
    if (!loosest || keeps_to_limit(plan, made, memory)) return made;
    // In stage activations: `fits` is known to, `above` is known not to.
    const double most = std::min(*loosest, static_cast<double>(size.num_microbatches)) * size.stages_per_rank;
    int fits = size.stages_per_rank, above = static_cast<int>(std::ceil(most));
    const auto make_with = [&](int num_held) { return make(static_cast<double>(num_held) / size.stages_per_rank); };
    made = make_with(fits);
    if (!keeps_to_limit(plan, made, memory)) return made;
    while (above - fits > 1) {
        const int middle = (above + fits) / 2;
        Schedule tried = make_with(middle);
        const bool keeps = keeps_to_limit(plan, tried, memory);
        (keeps ? fits : above) = middle;
        if (keeps) made = std::move(tried);
    }
    return made;
}

void check_activations(const Plan& plan, const Schedule& schedule, const ActivationMemory& memory,
                       const std::function<std::vector<FittingSchedule>()>& find_fitting) {
    if (keeps_to_limit(plan, schedule, memory)) return;
    const MemoryLimit& limit = *plan.pipeline.memory_limit;
    const ScheduleSize size{schedule.num_ranks, schedule.num_stages() / schedule.num_ranks, schedule.num_microbatches};
    const int64_t as_placed = bytes_of_one(memory, schedule.num_ranks, schedule.rank_of_stage);
    refuse_below(std::min(bytes_of_one(memory, size), as_placed), plan, size.stages_per_rank);
    const double activations = peak_activations(schedule);
    const int64_t bytes = memory.peak_bytes(schedule);
    throw Error(ErrorKind::Plan,
                schedule.name + " is above pipeline.memory_limit: a rank holds the activations of " +
                    fixed_text(activations, 2) + " microbatches, with the gradients of a backward " +
                    bytes_text(bytes) + " at most (got " + text_of(limit) + ", expected at least " +
                    (limit.bytes ? exact_bytes_text(bytes) : fixed_text(activations, 2)) + ")" +
                    (find_fitting ? fitting_text(plan, find_fitting()) : ""),
                plan.where("pipeline.memory_limit"));
}

}  // namespace vpp
