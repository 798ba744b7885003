#pragma once
// A model as symbolic execution sees it: ops in order, cut into stages, with the edges that the cuts make. No tensors:
// an op is known by its number, its value by what went into it.
#include <cstdint>
#include <vector>

#include "schedule/schedule.hpp"

namespace vpp {

/// Op k makes value k.
struct SymbolicOp {
    std::vector<int> inputs;     ///< earlier values, repeated where used twice; none: it reads the microbatch's data
    int parameter = -1;          ///< the weight that it uses
    bool differentiable = true;  ///< false: nothing goes back through it
    bool random = false;         ///< draws from the microbatch's key
    bool has_buffer = false;     ///< advances a buffer at each forward, as batch norm does
};

/// What an edge carries: a value, or the gradient of a tied parameter.
struct SymbolicEdge {
    ScheduleEdge edge;
    int value = -1;      ///< op
    int parameter = -1;  ///< of a tied edge
};

/// Ops [begin, end) of one stage that are recomputed together: F keeps of them only the values that ops outside use,
/// and at B or I their forward is done again, right before their gradients.
struct SymbolicSegment {
    int begin = 0;
    int end = 0;
};

/// What a recompute must leave alone. The defaults are right; the others are mistakes that tests have to see.
struct RecomputeRules {
    bool keeps_buffers = true;      ///< they advance at F alone
    bool repeats_keys = true;       ///< random ops draw the same keys again, not the next ones
    bool is_kept_to_weight = true;  ///< done once, at B or I, and kept to W; else W does it again
};

struct SymbolicModel {
    std::vector<SymbolicOp> ops;            ///< the last one gives the loss
    std::vector<int> first_op;              ///< of each stage, ascending from 0
    std::vector<SymbolicSegment> segments;  ///< ascending, none across a cut
    RecomputeRules recompute;
    std::vector<bool> is_trained;     ///< by value: whether a gradient goes through it (from finish)
    std::vector<int> owner;           ///< by parameter: the first stage that uses it (from finish)
    std::vector<int> segment_of;      ///< by op: the number of its segment, or -1 (from finish)
    std::vector<SymbolicEdge> edges;  ///< by id (from finish)

    int num_stages() const { return static_cast<int>(first_op.size()); }
    int num_parameters() const { return static_cast<int>(owner.size()); }
    int stage_of(int op) const;
    /// One behind the last op of a stage.
    int end_op(int stage) const;
    std::vector<ScheduleEdge> schedule_edges() const;
};

/// Works out gradients, owners, segments and edges. The gradient of a value or of a tied parameter goes from its last
/// user back through the earlier ones (DESIGN section 4). Requires: inputs are earlier ops; parameters are numbered
/// from 0 without gaps; every stage has an op; segments as
///           described.
SymbolicModel finish(SymbolicModel model);

/// What a random model may have.
struct RandomModelOptions {
    int most_ops_per_stage = 3;
    bool tied = true;  ///< parameters that several stages use
};

/// Values with skips and several uses, inside a stage too; tied parameters, recomputed segments, random ops, buffers,
/// and ops without gradient. A pure function of its arguments.
SymbolicModel make_random_model(int num_stages, uint64_t seed, const RandomModelOptions& options = {});

}  // namespace vpp
