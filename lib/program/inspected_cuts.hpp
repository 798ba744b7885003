#pragma once
// The boundaries between stages, each with the best one in its neighbourhood.
#include <vector>

#include "graph/graph.hpp"
#include "graph/stages.hpp"
#include "plan/plan.hpp"
#include "program/inspection.hpp"
#include "schedule/costs.hpp"

namespace vpp {

/// For every boundary the legal one with the fewest bytes between its neighbours for which neither of the two stages
/// gets heavier in FLOPs than the heaviest of the model, or than 1.05 times the heavier of the two.
std::vector<InspectedCut> inspect_cuts(const Graph& graph, const Split& split, const Plan& plan,
                                       const ScheduleCosts& costs);

}  // namespace vpp
