#pragma once
// Which ops are computed again in backward: ranges that become segments of their own (graph/stages.hpp). A range is
// widened to the next borders where the model may be cut, inside its stage.
#include <vector>

#include "graph/graph.hpp"
#include "graph/source.hpp"
#include "plan/plan.hpp"

namespace vpp {

/// The ranges that pipeline.recompute asks for, ascending, each inside one stage.
/// Requires: `cuts` are those of the stages.
/// Throws Error{Plan}: units that the model does not have, modules that name nothing (with did-you-mean).
std::vector<OpRange> find_recomputed(const Graph& graph, const Plan& plan, const std::vector<int>& cuts);

}  // namespace vpp
