#pragma once
// What the schedules over two stages per rank in v placement share. A microbatch goes down the ranks and up again:
//   rank 0:  stage 0      stage 2P-1        (P = 3)  0 \     / 5
//   rank r:  stage r      stage 2P-1-r                 1 \ / 4
//   rank P-1: stage P-1   stage P                       2 3
// so every rank has a stage on the way down (the a of formulas) and one on the way up (b).
#include <array>
#include <vector>

#include "schedule/schedule.hpp"
#include "schedule/size.hpp"

namespace vpp {

enum class Leg { Down, Up };

/// The stage of a rank on a leg.
inline int stage_on(Leg leg, int num_ranks, int rank) {
    return leg == Leg::Down ? rank : 2 * num_ranks - 1 - rank;
}

/// Throws: Error{Plan} when v is not 2.
void check_two_stages_per_rank(const ScheduleSize& size, const char* name);

/// A schedule in v placement whose lists are still empty.
Schedule make_empty_v(const ScheduleSize& size, const char* name);

/// Writes the list of one rank: every action takes the next microbatch of its stage. Actions of microbatches from M on
/// are counted and left out.
class VListWriter {
  public:
    VListWriter(const ScheduleSize& size, int rank) : size_(size), rank_(rank) {}

    /// B counts as I: both take the next microbatch that waits for its backward.
    void add(ActionKind kind, Leg leg);
    /// F as the first half of a pair with the next action.
    void add_paired_forward(Leg leg);
    /// How many F, I (with B) or W of a leg there were.
    int count(ActionKind kind, Leg leg) const { return counts_.at(slot(kind, leg)); }

    std::vector<Action> take() { return std::move(list_); }

  private:
    static size_t slot(ActionKind kind, Leg leg);

    ScheduleSize size_;
    int rank_;
    std::array<int, 6> counts_{};
    std::vector<Action> list_;
};

}  // namespace vpp
