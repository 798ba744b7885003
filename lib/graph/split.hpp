#pragma once
// Where to cut: a split method gives the first op of every stage but the first. All methods choose among the graph's
// legal cuts and never cut inside a unit. A new method is one function here and one row in split.cpp's table.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/balance.hpp"
#include "graph/graph.hpp"
#include "plan/plan.hpp"

namespace vpp {

/// The names that pipeline.split_method may have.
std::vector<std::string> split_methods();

/// The method that cuts by time (graph/balance.hpp).
inline constexpr const char* kSplitByTime = "AUTO";

/// What AUTO goes by: times of one microbatch in any one unit, and what stages may hold.
struct SplitTimes {
    std::vector<double> ops;                       ///< of each op: F and B
    double transfer = 0;                           ///< of a message, whatever it carries
    double transfer_of_a_byte = 0;                 ///< beside it
    std::optional<int64_t> most_activation_bytes;  ///< of a stage, over all the microbatches that it holds
    std::vector<int> in_flight;                    ///< how many those are, by stage; 1 where it is not known
};

/// The cuts of a plan: num_stages - 1 op indices, ascending; stage s runs from cuts[s - 1] to cuts[s].
/// Requires: plan.pipeline.num_stages and virtual_chunks are resolved; num_stages counts their product.
/// AUTO without `times` goes by FLOPs.
/// Throws Error{Plan}: fewer legal cuts than needed, unknown or illegal split point (with the nearest legal ones).
std::vector<int> find_split(const Graph& graph, const Plan& plan, int num_stages, const SplitTimes* times = nullptr);

/// The cuts of AUTO with their proof. Requires: a plan that cuts by this method; num_stages > 1.
/// Throws Error{Plan}: fewer legal cuts than needed, or no cut whose stages keep to most_activation_bytes.
Balance find_balance(const Graph& graph, const Plan& plan, int num_stages, const SplitTimes& times);

/// Whether a plan's cuts are chosen by time: neither stages by hand nor another method.
bool cuts_by_time(const Plan& plan);

/// The ops before which a plan's method may cut: legal, and inside none of the units that it lists.
std::vector<int> candidate_cuts(const Graph& graph, const Plan& plan);

/// Bytes of the tensors that live across the cut before `op`, each once; what a microbatch sends there.
int64_t cut_bytes(const Graph& graph, int op);
/// The same for every op in one walk: entry i is cut_bytes(graph, i).
std::vector<int64_t> all_cut_bytes(const Graph& graph);

/// The units of the graph: runs of ops of one listed submodule; without a list, of submodules that have a sibling of
/// the same class. unit_of[op] is a unit's number or -1; numbers ascend with the ops.
struct Units {
    std::vector<std::string> names;
    std::vector<int> unit_of;
};
Units find_units(const Graph& graph, const std::vector<std::string>& listed);
/// Throws Error{Plan} where an entry of `listed`, which stands under `key`, names no submodule.
void check_units(const Graph& graph, const Plan& plan, const std::string& key, const std::vector<std::string>& listed);

/// Cuts [begin, end) into `num_parts` so that the largest sum of `costs` is least; among those the fewest bytes over
/// the cuts, then the earliest cuts. `allowed` is asked for positions inside the range. Empty when there are too few.
/// Source: parametric min-max partition by dynamic programming; O(parts x positions x log positions).
struct PartitionProblem {
    std::vector<double> costs;       ///< one per op
    std::vector<int> positions;      ///< cuts that may be taken, ascending, inside (0, costs.size())
    std::vector<int64_t> cut_bytes;  ///< one per position
};
std::vector<int> min_max_partition(const PartitionProblem& problem, int num_parts);

}  // namespace vpp
