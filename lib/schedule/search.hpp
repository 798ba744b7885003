#pragma once
// schedule_type AUTO: the best schedule that generators and order search find for given costs under a memory limit.
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "schedule/costs.hpp"
#include "schedule/order_graph.hpp"
#include "schedule/schedule.hpp"
#include "schedule/size.hpp"

namespace vpp {

/// About ten seconds of one core on a problem of some hundred actions.
inline constexpr int64_t kDefaultSearchMoves = 20'000'000;

struct SearchRequest {
    int num_ranks = 1;
    int num_microbatches = 1;
    std::vector<int> stages_per_rank{1};  ///< the v to choose from
    /// The costs with so many stages; units (ticks_per_unit) may differ between sizes.
    std::function<ScheduleCosts(const ScheduleSize&)> costs = [](const ScheduleSize&) { return ScheduleCosts{}; };
    std::optional<double> memory_limit = {};     ///< most activations of microbatches on a full rank; none = no limit
    std::map<int, double> memory_limit_of = {};  ///< by v, where it differs
    /// By v: tied parameters, with ids from the number of stages on (those below are the chain's).
    std::map<int, std::vector<ScheduleEdge>> tied_edges = {};
    SearchObjective objective = SearchObjective::Makespan;
    bool split_backward = true;  ///< I and W may stand for B
    int64_t moves = kDefaultSearchMoves;
    uint64_t seed = 0;
};

/// How good a searched schedule is and where it came from. Times in ticks of its costs.
struct SearchRecord {
    int stages_per_rank = 1;
    Ticks makespan = 0;
    Ticks span = 0;
    /// What order search had to beat: "ZERO_BUBBLE_H1", "INTERLEAVED_1F1B (v 2, N 8)"; empty where none fits the limit.
    std::string best_generator;
    Ticks best_generated = 0;  ///< its makespan or span, whichever is searched for
    std::string origin;        ///< the generator whose order the search started from to find this schedule
    Ticks lower_bound = 0;     ///< no order of any asked v in loop or v placement is better (lower_bounds.hpp)
    int64_t moves = 0;         ///< proposed
    SearchObjective objective = SearchObjective::Makespan;

    Ticks cost() const { return objective == SearchObjective::Makespan ? makespan : span; }
    /// How much better a schedule might be at most: 0 when this one is proven best.
    double gap() const {
        return cost() > 0 ? static_cast<double>(cost() - lower_bound) / static_cast<double>(cost()) : 0;
    }
};

struct SearchResult : SearchRecord {
    Schedule schedule;    ///< named AUTO; computing actions only
    ScheduleCosts costs;  ///< of this schedule, in the unit of all times here
};

/// Starts from all generators of the registry that take the request, and plain lists (search_seeds.hpp), then searches
/// the orders of the most promising: half of the moves is shared by them, half goes on from the best result. With many
/// more microbatches than ranks most moves go to a problem with fewer first; its orders, their middle repeated
/// (steady_state.hpp), are starts too. At the end I and W that stand side by side become B where that costs nothing
/// (merge_backward.hpp). Of one span the generators' best makespan is taken. Ends after `moves` proposed moves or at
/// the lower bound. Never worse than the best generator within the memory limit. Whole numbers only: the same request
/// gives the same lists on every machine.
///
/// Tied parameters: orders are searched without them; of all that was found, the seeds included, the one is taken that
/// is best and within the limit in the order of order_tied, and so are the generators that it is compared with.
///
/// Memory:   a stage activation is 1/v; F takes one, B or W frees it
/// Requires: models without skips: a stage hands on to the next one alone. Orders are searched without pairs
///           (OVERLAP_F_B); generated pairs are kept when they are better.
/// Throws:   Error{Plan} for a size that is refused, a limit below 1, or costs with too many digits.
SearchResult search_schedule(const SearchRequest& request);

}  // namespace vpp
