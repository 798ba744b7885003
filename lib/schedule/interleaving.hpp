#pragma once
// The walk that the interleaved schedules share: in which order a rank takes its stages and microbatches.
// Loop placement; letters: P ranks, v stages per rank, M microbatches, N microbatches of a group.
#include <string>
#include <vector>

#include "schedule/request.hpp"

namespace vpp {

/// Microbatches go in groups of N. Within a group a rank walks its stages 0..v-1 and, for each, all microbatches of the
/// group. Step k of the walk gives the k-th forward; the k-th backward is that of the same microbatch with the stages
/// from last to first.
///
/// N is from P (the default) to M; with M < P there is one group of M. N = M is breadth first. A larger N gives
/// transfers more room to hide, at the price of (v-1)(N-P) more stage activations.
/// Any M works. When N does not divide M the last group is shorter. One of fewer than P microbatches behind others is
/// filled up to P, and the microbatches from M on are left out: they depend only on themselves, so what stays can
/// always run. (Shorter than P, the obvious way, it deadlocks: rank 0 waits for a forward that stands behind a backward
/// that waits for rank 0. Over P <= 8, v = 2..4, M <= 40, N = P it does so in 212 of 960 cases and is never faster in
/// the others.) Such a remainder, M mod N in 1..P-1, costs bubbles; N = M / (M div P), where that is whole, avoids it.
class InterleavedWalk {
  public:
    /// `name` is the schedule_type, for errors.
    /// Throws: Error{Plan} when request.interleave_group is not from min(P, M) to max(P, M).
    InterleavedWalk(const ScheduleRequest& request, const std::string& name);

    int num_steps() const { return static_cast<int>(steps_.size()); }
    /// Forwards that a rank runs before its first backward step, so that (hops) later stages can start theirs.
    int num_warmup(int hops) const;
    /// Appends the action of a step; nothing for a step that is left out.
    void append(ActionKind kind, int rank, int step, std::vector<Action>& list) const;

  private:
    struct Step {
        int local_stage;
        int microbatch;
    };

    ScheduleSize size_;
    int group_;  ///< N
    std::vector<Step> steps_;
};

}  // namespace vpp
