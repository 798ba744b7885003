#pragma once
// Which boundaries between ops may be cut: where cutting cannot change bits. The rules were found by running every cut
// of many models against the uncut one (DESIGN section 4); each refusal names what stands in the way.
#include <vector>

#include "graph/graph.hpp"
#include "graph/jit_alias.hpp"
#include "graph/jit_families.hpp"

namespace vpp {

/// One entry per op; entry i is the cut before op i.
/// Requires: ops, values, tensors, parameters and loss of the graph are filled; values[i] is the graph's value i;
/// families are of these values.
std::vector<GraphCut> find_cuts(const Graph& graph, const JitGraph& jit, const AliasFacts& aliases,
                                const MemoryFamilies& families, const std::vector<torch::jit::Value*>& values);

}  // namespace vpp
