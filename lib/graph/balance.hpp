#pragma once
// The cut of least bottleneck by measured times (pipeline.split_method = "AUTO"): with transfers, under a limit of
// memory, proven, and held against the next best one.
#include <functional>
#include <optional>
#include <vector>

namespace vpp {

/// What may be cut where, and what stages cost. Times are of one microbatch, in any one unit.
struct BalanceProblem {
    std::vector<double> times;      ///< of each op: F and B
    std::vector<int> positions;     ///< cuts that may be taken, ascending, inside (0, times.size())
    std::vector<double> cut_times;  ///< one per position: what a message over the cut takes, one way
    /// Whether stage `stage` may be made of the ops [begin, end); empty: any may.
    std::function<bool(int stage, int begin, int end)> fits;
};

/// A stage takes the times of its ops and of one message over each of its cuts: a message there and one back are shared
/// by the two stages of a cut.
struct Balance {
    std::vector<int> cuts;
    double bottleneck = 0;            ///< time of the longest stage; no choice of cuts has a shorter one
    double lower_bound = 0;           ///< of any cut: a mean stage, or the longest run of ops that no cut divides
    std::optional<double> next_best;  ///< bottleneck of the best other choice of cuts; none where there is no other
};

/// Least bottleneck first; among those choices the least sum of squares of the stages' times, so that stages beside the
/// bottleneck are even too; then the earliest cuts. None when no choice fits.
/// Source: dynamic programming over borders from both ends, O(stages x positions^2). Two choices of cuts differ in one
/// place at least, so the best other one is the least, over stages k and positions other than the chosen one, of what
/// the ends of both walks say for cut k there.
std::optional<Balance> balance_stages(const BalanceProblem& problem, int num_stages);

}  // namespace vpp
