#include "report/pipeline_times.hpp"

#include "base/error.hpp"
#include "schedule/simulator.hpp"

namespace vpp {

std::vector<StageTimesEvent> PipelineTimes::stage_events(const std::vector<StageTimes>& times) const {
    check(times.size() == sums_.size(), "the times of every stage are known");
    std::vector<StageTimesEvent> stages;
    for (size_t i = 0; i < times.size(); ++i) {
        StageTimesEvent& stage = stages.emplace_back();
        stage.rank = lowered_.rank_of_stage[i];
        stage.forward_ms = 1e3 * times[i].forward;
        stage.backward_ms = 1e3 * (times[i].compute() - times[i].forward);
        stage.transfer_ms = 1e3 * times[i].transfer();
        stage.wait_ms = 1e3 * times[i].wait;
    }
    return stages;
}

void PipelineTimes::fill(StepEvent& event, const std::vector<StageTimes>& times, double seconds) const {
    event.stages = stage_events(times);
    if (!are_waits_known_) return;
    event.bubble_idle = measured_bubble(lowered_, times, seconds);
    event.bubble_predicted = simulate(lowered_, costs_of_times(lowered_, times)).bubble_rate();
}

void PipelineTimes::add(int64_t step, const std::vector<StageTimes>& times, double seconds) {
    check(times.size() == sums_.size(), "the times of every stage are known");
    if (num_steps_++ == 0) first_step_ = step;
    last_step_ = step;
    seconds_ += seconds;
    for (size_t i = 0; i < times.size(); ++i) sums_[i] += times[i];
}

PipelineEvent PipelineTimes::mean() const {
    check(num_steps_ > 0, "a mean is one of steps");
    std::vector<StageTimes> times = sums_;
    for (StageTimes& stage : times) stage *= 1.0 / static_cast<double>(num_steps_);
    const double seconds = seconds_ / static_cast<double>(num_steps_);
    const ScheduleCosts costs = costs_of_times(lowered_, times);
    const Simulation predicted = simulate(lowered_, costs);
    PipelineEvent event;
    event.first_step = first_step_;
    event.step = last_step_;
    event.schedule = lowered_.name;
    event.num_ranks = lowered_.num_ranks;
    event.num_microbatches = lowered_.num_microbatches;
    event.stages = stage_events(times);
    event.actions_ms = 1e3 * seconds;
    event.predicted_ms = costs.units(predicted.makespan);
    if (!are_waits_known_) return event;
    event.bubble_idle = measured_bubble(lowered_, times, seconds);
    event.bubble_predicted = predicted.bubble_rate();
    return event;
}

}  // namespace vpp
