#pragma once
// Replicas must hold the same weights, bit for bit; a faulty memory, kernel or network makes them drift apart in
// silence.
#include <vector>

#include "comm/transport.hpp"
#include "graph/graph.hpp"
#include "mesh/mesh.hpp"
#include "stage/weights.hpp"

namespace vpp {

/// Compares hashes of the parameters and buffers that replicas own.
/// Calls:  collective.
/// Throws: Error{RanksDisagree} on every rank, naming the model's first parameter that differs and the ranks that hold
///         each of its values.
void check_drift(Transport& transport, const Mesh& mesh, const Graph& graph, const Weights& weights, int64_t step);

}  // namespace vpp
