#pragma once
// Which integer inputs of a model are indices, and into how many rows: tokens of an embedding, labels of a loss, what
// gather, index_select and x[index] choose by. Found
// in the graph, so that a value out of range is refused where file and sample can be named.
#include <vector>

#include "data/ranges.hpp"
#include "graph/graph.hpp"

namespace vpp {

/// Follows embedding indices and class targets back to model inputs, through views of all that an input holds. A loss
/// whose ignore_index is not known gives no range.
std::vector<ValueRange> find_value_ranges(const Graph& graph);

}  // namespace vpp
