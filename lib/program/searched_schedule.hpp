#pragma once
// schedule_type = "AUTO": the search over the plan's own stages.
#include "graph/graph.hpp"
#include "plan/plan.hpp"
#include "program/cost_model.hpp"
#include "schedule/search.hpp"

namespace vpp {

/// The stages per rank that virtual_chunks = "auto" chooses from, as far as the model can be cut so often.
inline constexpr int kMostSearchedPerRank = 4;

/// Splits the model for every number of stages per rank that may be chosen, and searches over all of them with the
/// costs of their stages, under the plan's memory limit: where what is found with the loosest limit is above the bytes
/// (program/activation_limit.hpp), it is searched again with tighter ones, and the best is taken that keeps to them.
/// Seed and moves are the plan's: the same plan, model and cost
/// file give the same schedule on every machine. With tied weights in two stages B stays whole: the W of one stage
/// waits for the W of another then, which the search does not know of; a whole B comes after it anyway. By measured
/// costs B is divided only where that gains kWorthwhileGain: a quarter of the moves goes to the best whole one.
/// Requires: a plan resolved for its world.
/// Throws:   Error{Plan}: the model cannot be cut so often, a limit in which no microbatch has room, costs with too
///           many digits.
SearchResult search_schedule(const Plan& plan, const Graph& graph, const CostModel& costs);

}  // namespace vpp
