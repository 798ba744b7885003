#pragma once
// What LibTorch's alias analysis does not know of loops: one that is not run gives on what it is given, and what one
// round gives the next one is given, in another place too.
#include "graph/jit_alias_lists.hpp"

namespace vpp {

/// Tells the analysis, in the copy of the graph that it is made of; `twins` then names the values that know it.
void tell_loops(torch::jit::Graph& copy, ValueTwins& twins);

}  // namespace vpp
