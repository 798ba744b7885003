#pragma once
// What no order can beat: lower bounds of makespan and span for one placement, proven from the dependencies alone.
#include "schedule/order_graph.hpp"
#include "schedule/size.hpp"

namespace vpp {

/// What a bound is for.
struct BoundedProblem {
    std::vector<int> rank_of_stage;
    int num_ranks = 1;
    int num_microbatches = 1;
    ScheduleCosts costs;
    int most_held = 0;            ///< stage activations on a rank: F takes one, B or W frees it
    bool splits_backward = true;  ///< I and W may stand for B
};

/// The largest of these, for models without skips. g(s) is the least time from the start of a stage's backward to its
/// input's gradient, b(s) to the end of all of it: B, or with a split min(I, B) and min(I + W, B). For rank r with
/// lowest stage `a` and highest stage `z`, work(r) = M x sum over its stages of F + b:
///
/// 1. one microbatch: all F up the chain, all g down it, b of stage 0.
///    Reason: each waits for the one before it.
/// 2. idle(r) + work(r), with idle(r) the larger of
///    - the F of the stages below a: nothing on r can start before them;
///    - (F of all stages, then g from the last stage down to z+1) - (the `most_held` dearest F of r): the first
///      backward on r is that of z and microbatch 0, which waits for all of those, and before it r can do nothing but
///      F, each of which takes one activation that nothing has freed yet.
///      At even costs on rank 0 that is (P-1)(T_I+2c) + (P-k)T_F for limit k.
///    Reason: r is idle so long and has so much to do. For the span only work(r) counts.
/// 3. idle(r) + work(r) - left(r) + (g from stage a-1 down to 1, b of stage 0), with left(r) the `most_held` dearest W
///    of r (0 without a split), for ranks with a > 0.
///    Reason: the last backward of a on r comes after all F and all input gradients of r, and after all W but those
///    whose activations are still held; then the stages below have to follow. It counts for the span too, since rank 0
///    does the first F and the end of the chain.
/// 4. (F of the stages below a) + M x (sum over the stages of r of hold) / most_held, with hold(s) the chain from the
///    start of F of s up to the last stage and back to the end of b of s; for the span without the first part.
///    Reason: each of r's activations is held for its `hold` at least, never more than `most_held` of them at once.
/// With overlapping pairs each F may be shorter by overlap_percent in work(r): a pair saves that part of its shorter
/// half. Transfers are part of the chains where neighbouring stages are on different ranks.
Ticks lower_bound_of(const BoundedProblem& problem, SearchObjective objective);

}  // namespace vpp
