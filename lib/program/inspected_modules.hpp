#pragma once
// The tree of submodules with the stages in it, folded, and the same as blocks with what flows between them.
#include <vector>

#include "graph/graph.hpp"
#include "graph/stages.hpp"
#include "program/inspection.hpp"

namespace vpp {

struct InspectedTree {
    std::vector<InspectedModule> modules;
    std::vector<InspectedBlock> blocks;  ///< by stage, then in the order of their first ops
    std::vector<InspectedFlow> flows;
};

/// `depth` as for inspect_program (program/inspect.hpp).
InspectedTree inspect_modules(const Graph& graph, const Split& split, int depth);

/// The outermost submodules whose ops a stage runs, shortened: "blocks.0 .. blocks.2"; "-" for none.
std::string modules_of_stage(const Graph& graph, const StageSpec& stage);

}  // namespace vpp
