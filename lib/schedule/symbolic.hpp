#pragma once
// Symbolic execution: runs the lists of all ranks on a model whose values and gradients are expression trees, and
// compares them with one device doing the same microbatches in order. A term that is missing, comes twice, belongs to
// another microbatch or stands in another bracket gives another tree, so equal trees are equal bits (DESIGN section 4).
//
// What is modelled: live-in values by message or hand-over; the gradient of a value from its last consumer back, the
// arrived part first, then this stage's uses, last first; the same for a tied parameter from W to W; results of
// microbatches that are not in turn are parked; segments that are recomputed once for each microbatch, at B or I, and
// kept to W; keys of random ops, the same in a recompute; buffers that advance at F alone.
#include <cstdint>
#include <string>
#include <vector>

#include "schedule/expression.hpp"
#include "schedule/symbolic_model.hpp"

namespace vpp {

/// How a RECV finds its message.
enum class Channels {
    Tagged,   ///< by edge and microbatch: MPI
    Ordered,  ///< the next one that its rank sends this one, whatever it is: NCCL
};

/// What a step leaves behind.
struct SymbolicStep {
    std::vector<Tree> gradients;             ///< by parameter: its `.grad`, at its owner
    std::vector<std::vector<Tree>> values;   ///< by op and microbatch, as its forward made it
    std::vector<Tree> buffers;               ///< by op; undefined where it has none
    std::vector<std::vector<int>> num_runs;  ///< by op and microbatch: how often its forward was done
    std::vector<std::string> problems;       ///< actions that could not run, ranks that are stuck
};

/// The reference: the model uncut on one device, one backward for each microbatch in order. With `reduced`, gradients
/// are reduced at the end.
SymbolicStep run_on_one_device(TreePool& pool, const SymbolicModel& model, int num_microbatches, bool forward_only,
                               bool reduced = false);

/// The lists, by their actions and nothing else: any list is taken, also one that check_schedule refuses.
/// Requires: a stage for each of the model's; edges numbered as model.edges.
SymbolicStep run_lists(TreePool& pool, const SymbolicModel& model, const Schedule& lowered,
                       Channels channels = Channels::Tagged);

/// Runs both and says where they differ: which parameter, value or buffer of which stage, and both trees, shortened;
/// and where a forward is done more or less often than once, and once more in a segment. At most eight; empty: every
/// tree is equal. Gradients are compared as reduced when the lists have a REDUCE_GRAD.
std::vector<std::string> symbolic_differences(const SymbolicModel& model, const Schedule& lowered,
                                              Channels channels = Channels::Tagged);

}  // namespace vpp
