#pragma once
// What the ops of a forward take, from a walk on the meta device in which every value goes behind its last use, as in
// a run.
#include <cstdint>
#include <vector>

#include "graph/jit_graph.hpp"
#include "graph/op_trial.hpp"

namespace vpp {

/// Of one op and one microbatch.
struct OpMemory {
    int64_t kept_bytes = 0;     ///< made by it and there behind the forward: what the backward reads
    int64_t inner_bytes = 0;    ///< made by it, there behind it and none of its outputs
    int64_t passing_bytes = 0;  ///< of all that is there behind it, what goes before the forward ends
};

/// By op. `values` hold the graph's inputs and parameters, which do not count; the loss alone is there behind the
/// forward. Requires: places.device is the meta device, and its memory is reported (graph/meta_memory.hpp).
/// Throws: as OpTrial.
std::vector<OpMemory> forward_memory(const JitGraph& jit, TrialValues values, const TrialPlaces& places);

}  // namespace vpp
