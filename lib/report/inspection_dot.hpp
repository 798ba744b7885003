#pragma once
// An Inspection as a graph for Graphviz: a box a row of the tree, a frame a stage, an arrow what flows, with its bytes
// where it leaves a stage.
#include <string>

#include "program/inspection.hpp"

namespace vpp {

/// For `dot -Tsvg`. Names are escaped.
std::string inspection_dot(const Inspection& inspection);

}  // namespace vpp
