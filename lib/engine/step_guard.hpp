#pragma once
// Whether a step may update: its loss and gradient norm are finite, and its loss is no spike. Arithmetic only; every
// rank has the same numbers and comes to the same verdict.
#include <deque>
#include <string>

#include "plan/plan.hpp"

namespace vpp {

class StepGuard {
  public:
    enum class Verdict { Update, Warn, Skip, Stop };

    struct Judgement {
        Verdict verdict = Verdict::Update;
        bool is_finite = true;
        std::string reason;  ///< "the loss is nan and the gradient norm inf"; empty for Update
    };

    /// Losses that a loss is compared with: those of the last steps that were no spikes; fewer than the least judge
    /// nothing.
    static constexpr size_t kMostLosses = 64, kLeastLosses = 16;
    /// More skipped steps in a row than this are a training that is lost: the verdict is then Stop.
    static constexpr int kMostSkips = 10;

    /// Requires: the plan's ranges.
    explicit StepGuard(const TrainPlan& plan);

    /// Judges the next step; a loss that is no spike joins those that later ones are compared with. A spike is a loss
    /// more than train.spike_sigmas standard deviations above the mean; a deviation below 1 % of the mean counts as
    /// that.
    Judgement judge(double loss, double grad_norm);

    /// What later verdicts depend on, for a checkpoint: numbers as hexadecimal floating-point text.
    std::string memory() const;
    /// Takes what memory() gave.  Throws: Error{BadData} for any other text.
    void restore(const std::string& memory);

  private:
    Judgement judge_alone(double loss, double grad_norm) const;

    std::string on_nonfinite_, on_spike_;
    double sigmas_;
    std::deque<double> losses_;
    int skips_ = 0;  ///< in a row
};

}  // namespace vpp
