#pragma once
// Ranks that have become slower than they were, while the others have not: a host that throttles, swaps or shares.
// Stages differ in cost, so each rank is measured by its own past.
#include <deque>
#include <string>
#include <vector>

namespace vpp {

class Stragglers {
  public:
    /// Steps that make a rank's usual time, and the fewest of them that say anything.
    static constexpr size_t kMostSteps = 64, kLeastSteps = 16;
    /// A rank below this share of its usual pace, in so many steps in a row, is a straggler. Each time it takes twice
    /// as many, up to the most: on hosts that others use too ranks are slow again and again.
    static constexpr double kSlowPace = 0.7;
    static constexpr int kSlowSteps = 5, kMostSlowSteps = 320;

    explicit Stragglers(size_t num_ranks);

    /// Takes the seconds that each rank computed in a step; a sentence for each rank that has become a straggler or has
    /// found back to its pace. Pace is usual time / time. A straggler's is low beside 1 and beside the median pace of
    /// all ranks: what slows all is nobody's fault.
    std::vector<std::string> look(const std::vector<double>& busy_seconds);

  private:
    struct Rank {
        std::deque<double> usual;  ///< seconds; of steps at a usual pace
        int slow_steps = 0;        ///< in a row
        int steps_to_say = kSlowSteps;
        bool is_said = false;
    };
    std::vector<Rank> ranks_;
};

}  // namespace vpp
