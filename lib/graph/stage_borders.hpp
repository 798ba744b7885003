#pragma once
// Where a graph that was joined from [[pipeline.stage]] tables is cut: at the borders of the tables.
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "plan/plan.hpp"

namespace vpp {

/// The stage that an op's label belongs to: below the stage's name, or below one of its submodules; -1: to none.
int stage_of_module(const std::vector<StagePlan>& stages, const std::string& module);

/// The first op of every stage but the first. An op without such a label stays with the ops before it.
/// Requires: the graph was joined from the plan's stages.
/// Throws Error{Plan}: a stage without ops, a border where cutting would change bits (with the reason); all at once.
std::vector<int> stage_borders(const Graph& graph, const Plan& plan);

}  // namespace vpp
