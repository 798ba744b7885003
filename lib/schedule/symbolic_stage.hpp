#pragma once
// One stage of a model under symbolic execution: what it holds for each microbatch, and what its actions make of that.
#include <functional>
#include <map>
#include <vector>

#include "schedule/edges.hpp"
#include "schedule/expression.hpp"
#include "schedule/symbolic_model.hpp"

namespace vpp {

struct SymbolicStep;

/// The tree of op `k` in one microbatch, from the trees of its inputs. A random op takes the key of its execution
/// number `execution` in that microbatch.
Tree make_value(TreePool& pool, const SymbolicModel& model, int k, int microbatch, int execution,
                const std::function<Tree(int op)>& input);

/// What was not there when an action needed it is Missing in the trees that the action makes.
class SymbolicStage {
  public:
    /// Leaves gradients, values and buffers in `step`, which the stages share.
    SymbolicStage(TreePool& pool, const SymbolicModel& model, int stage, int num_microbatches, SymbolicStep& step);

    /// F, B, I or W.
    void compute(ActionKind kind, int microbatch);
    /// REDUCE_GRAD: gradients that come later are not in it.
    void reduce();
    /// What arrived by an edge.
    void put(const SymbolicEdge& edge, bool gradient, int microbatch, Tree tree);
    /// What leaves by an edge.
    Tree get(const SymbolicEdge& edge, bool gradient, int microbatch) const;

  private:
    enum class Phase { Nothing, Forward, InputGradient, Done };

    /// What is held for one microbatch; by op or by parameter of the whole model.
    struct Held {
        Phase phase = Phase::Nothing;
        std::vector<Tree> values;           ///< live-ins and own ones, as inputs of other ops
        std::vector<Tree> saved;            ///< by own op: what its backward needs
        std::vector<Tree> value_gradients;  ///< arrived; after I or B the sums
        std::vector<Tree> tied_gradients;   ///< arrived; after W or B the sums
    };

    void forward(int microbatch);
    void run_op(int k, int microbatch, bool again);
    void drop(const SymbolicSegment& segment, int microbatch);
    void recompute(const SymbolicSegment& segment, int microbatch);
    void recompute_for_weights(int microbatch);
    void input_gradients(int microbatch);
    void weight_gradients(int microbatch);
    void take_turn(int microbatch, std::vector<Tree> gradients);
    void add(const std::vector<Tree>& gradients);
    Held& held(int microbatch) { return held_[static_cast<size_t>(microbatch)]; }
    int segment_of(int k) const { return model_.segment_of[static_cast<size_t>(k)]; }

    TreePool& pool_;
    const SymbolicModel& model_;
    int stage_, first_, end_;
    SymbolicStep& step_;
    std::vector<SymbolicSegment> segments_;  ///< of this stage
    std::vector<bool> is_used_outside_;      ///< by op: by another op of this stage that is not in its segment
    std::vector<Held> held_;
    std::map<int, std::vector<Tree>> parked_;  ///< by microbatch: gradients of the parameters owned here
    int next_ = 0;                             ///< whose turn it is
};

}  // namespace vpp
