#pragma once
// Some steps of a training as they went on all ranks, on one clock: traces, a timeline and a drawing. The executor
// times its actions anyway; a profile keeps what it has of a step, and writes when the last step is done. So a step
// that is profiled does what others do, and keeps its bits.
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/clock_alignment.hpp"
#include "base/log.hpp"
#include "comm/transport.hpp"
#include "program/program.hpp"
#include "report/profile_steps.hpp"
#include "schedule/measured_step.hpp"

namespace vpp {

class Profiler {
  public:
    /// Files go to `folder`, by rank 0: trace-stepN.json (schedule/measured_trace.hpp) for each step, and for the one
    /// of median duration timeline.json (schedule/measured_step.hpp), whose drawing is given to `show`.
    /// Owns: borrows transport and program.
    Profiler(Transport& transport, const Program& program, std::filesystem::path folder, StepRange steps, Logger log,
             std::function<void(const std::string&)> show);

    /// Before each step. The first time inside the range the clocks of the ranks are compared.
    /// Calls: collective.
    void before(int64_t step);
    /// Whether the step that comes is profiled.
    bool is_open() const { return is_open_; }
    /// Behind each step; behind the last one of the range all is written, for which all wait: the transport's deadline
    /// is then a long one, until the caller sets another.
    /// Calls: collective.
    void after(int64_t step, const StepMoments& moments, const std::vector<ActionSpan>& actions,
               const std::vector<ReadSpan>& reads);
    /// When the training ends before the range does: writes what there is.
    /// Calls: collective.
    void finish();

  private:
    struct Taken {
        int64_t step = 0;
        StepMoments moments;
        std::vector<ActionSpan> actions;
        std::vector<ReadSpan> reads;
    };
    Bytes taken_bytes() const;
    std::vector<MeasuredStep> put_together(const std::vector<Bytes>& shares, const std::vector<ClockOffset>& end) const;
    void write(const std::vector<MeasuredStep>& steps) const;

    Transport& transport_;
    const Program& program_;
    std::filesystem::path folder_;
    StepRange steps_;
    Logger log_;
    std::function<void(const std::string&)> show_;
    bool is_open_ = false;  ///< the clocks are compared and nothing is written yet
    std::vector<ClockOffset> begin_;
    std::vector<Taken> taken_;
};

}  // namespace vpp
