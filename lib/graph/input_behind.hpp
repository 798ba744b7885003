#pragma once
// Which input of the model a value is, for who reads in the data what ops would be given.
#include "graph/graph.hpp"

namespace vpp {

/// The input of integers that a value is a view of, with all that it holds, or -1. One that is written holds other
/// values then.
int input_behind(const Graph& graph, int value);

}  // namespace vpp
