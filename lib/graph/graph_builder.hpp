#pragma once
// Puts the facts together: JitGraph, aliases and probe -> the torch-free Graph.
#include <unordered_map>

#include "graph/graph.hpp"
#include "graph/jit_alias.hpp"
#include "graph/jit_graph.hpp"
#include "graph/probe.hpp"

namespace vpp {

/// The values of a Graph by index: what Source needs to find them again.
using JitValues = std::vector<torch::jit::Value*>;

/// Parameters, then inputs, those that are used; then what each op makes. The Graph numbers its values in this order.
JitValues list_values(const JitGraph& jit);

/// Values, tensors, ops, parameters and legal cuts; digest and modules are the reader's to add.
/// Requires: values are list_values(jit).
/// Throws Error{BadData} when the loss is not one floating-point number.
Graph build_graph(const JitGraph& jit, const AliasFacts& aliases, const ProbeResult& probe, const JitValues& values);

}  // namespace vpp
