#pragma once
// The pipeline of a training, measured: from the times of its stages to what a step tells, and to the mean of the run
// beside what the simulator makes of it.
#include <cstdint>
#include <vector>

#include "report/event.hpp"
#include "schedule/measured_times.hpp"

namespace vpp {

class PipelineTimes {
  public:
    /// `are_waits_known`: false where ranks exceed cores, and waiting says nothing about the schedule.
    /// Owns: borrows the schedule.
    PipelineTimes(const Schedule& lowered, bool are_waits_known)
        : lowered_(lowered), are_waits_known_(are_waits_known), sums_(lowered.rank_of_stage.size()) {}

    /// Fills in what `event` tells of the pipeline. `seconds` is what the actions of the slowest rank took.
    /// Requires: times of every stage.
    void fill(StepEvent& event, const std::vector<StageTimes>& times, double seconds) const;

    /// Takes a step into the mean of the run.
    void add(int64_t step, const std::vector<StageTimes>& times, double seconds);
    int64_t num_steps() const { return num_steps_; }
    /// Requires: num_steps() > 0.
    PipelineEvent mean() const;

  private:
    std::vector<StageTimesEvent> stage_events(const std::vector<StageTimes>& times) const;

    const Schedule& lowered_;
    bool are_waits_known_;
    std::vector<StageTimes> sums_;
    double seconds_ = 0;
    int64_t num_steps_ = 0;
    int64_t first_step_ = 0;
    int64_t last_step_ = 0;
};

}  // namespace vpp
