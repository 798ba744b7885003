#pragma once
// What is said of models whose mode is baked in: a trace has dropout and batch norm as they were, so training or
// evaluation has those of the other; so it is with random numbers that only training is to draw.
#include <string>

#include "graph/graph.hpp"
#include "graph/jit_graph.hpp"
#include "graph/model_files.hpp"

namespace vpp {

/// Adds to the graph's warnings: of every stage, or the one model, that acts by a mode which it does not look at, what
/// training or evaluation gets that it should not have; and of each that was traced and draws numbers in both.
/// `training`: the mode that the graph was made for.
/// Requires: the ops of both are the same.
void add_mode_notes(Graph& graph, const JitGraph& jit, const ModelFiles& files, bool training);

}  // namespace vpp
