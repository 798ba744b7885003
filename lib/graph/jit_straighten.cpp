#include "graph/jit_graph.hpp"

namespace vpp {

namespace {

constexpr int kMostStraightenings = 16;

}  // namespace

void straighten(JitGraph& jit) {
    fold_constants(jit);
    for (int round = 0; round < kMostStraightenings; ++round) {
        while (fold_type_checks(jit.graph->block())) fold_constants(jit);
        unroll_loops(jit);
        if (!settle_containers(jit)) return;
    }
}

}  // namespace vpp
