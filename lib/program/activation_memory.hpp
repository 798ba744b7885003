#pragma once
// What the stages of a rank keep of the microbatches under way while it works through its list, from shapes alone and
// at most: what inspect shows as "in flight" and what pipeline.memory_limit in bytes is about.
//
// A B frees what F kept. An I frees nothing before it ends: it runs on the whole graph, and beside that it keeps the
// gradients from which W starts. Behind it these wait, with all that only W reads. Messages come on top, and the sums
// of the weight gradients.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "graph/stages.hpp"
#include "plan/plan.hpp"
#include "schedule/schedule.hpp"

namespace vpp {

class ActivationMemory {
  public:
    /// Borrows nothing. The plan says whether the last microbatch is recomputed.
    ActivationMemory(const Plan& plan, const Graph& graph, const Split& split);

    /// Of a rank at its fullest moment.
    int64_t peak_bytes(const Schedule& schedule, size_t rank) const;
    /// Of the fullest rank.
    int64_t peak_bytes(const Schedule& schedule) const;

    int num_stages() const { return static_cast<int>(stages_.size()); }
    /// Kept of one microbatch between F and its backward.
    int64_t kept_bytes(int stage) const;
    /// The most that a stage keeps of a microbatch between two actions: with halves of a backward also from I to W.
    int64_t most_kept_bytes(bool with_halves) const;
    /// The most that any action takes beside what is kept before or behind it, whichever is more.
    int64_t most_working_bytes(bool with_halves) const;

  private:
    /// Of one segment and microbatch.
    struct Segment {
        bool recompute = false;
        bool gives_input_gradients = false;  ///< else its I has nothing to do, and W is the whole backward
        int64_t activation = 0, input = 0;   ///< kept from F on: all, or of a recomputed one its inputs
        int64_t made_again = 0;              ///< what recompute makes
        int64_t passing = 0, working = 0;    ///< for a moment of forward, of backward
        int64_t captured = 0;                ///< the gradients that I keeps for W
        int64_t waiting = 0;                 ///< from I to W
    };
    /// Up, then down.
    struct Change {
        int64_t during = 0, behind = 0;
    };

    static Change change_of(const Segment& segment, ActionKind kind, bool again);

    std::vector<std::vector<Segment>> stages_;
    bool is_last_recomputed_ = true;
};

}  // namespace vpp
