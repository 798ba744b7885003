#include "schedule/symbolic.hpp"

#include <unordered_map>

#include "base/error.hpp"
#include "schedule/messages.hpp"
#include "schedule/size.hpp"
#include "schedule/symbolic_stage.hpp"

namespace vpp {

namespace {

/// Messages on their way: by number, or in the order in which they were sent.
class Mailbox {
  public:
    Mailbox(const Schedule& schedule, size_t num_edges, Channels channels)
        : channels_(channels),
          num_microbatches_(static_cast<size_t>(schedule.num_microbatches)),
          num_ranks_(schedule.num_ranks) {
        if (channels == Channels::Tagged) sent_.resize(num_edges * 2 * num_microbatches_, kNotSent);
    }

    void send(int rank, const Action& action, Tree tree) {
        if (channels_ == Channels::Tagged) sent_[number(action)] = tree;
        if (channels_ == Channels::Ordered) queue(rank, action).trees.push_back(tree);
    }
    bool has(int rank, const Action& action) {
        if (channels_ == Channels::Tagged) return sent_[number(action)] != kNotSent;
        const Queue& waiting = queue(rank, action);
        return waiting.next < waiting.trees.size();
    }
    Tree take(int rank, const Action& action) {
        if (channels_ == Channels::Tagged) return sent_[number(action)];
        Queue& waiting = queue(rank, action);
        return waiting.trees[waiting.next++];
    }

  private:
    static constexpr Tree kNotSent = UINT32_MAX;

    struct Queue {
        std::vector<Tree> trees;
        size_t next = 0;
    };

    size_t number(const Action& action) const {
        const size_t route = static_cast<size_t>(action.edge) * 2 + (carries_gradient(action.kind) ? 1 : 0);
        return route * num_microbatches_ + static_cast<size_t>(action.microbatch);
    }
    Queue& queue(int rank, const Action& action) { return queues_[channel_number(action, rank, num_ranks_)]; }

    Channels channels_;
    size_t num_microbatches_;
    int num_ranks_;
    std::vector<Tree> sent_;                    ///< [edge][value or gradient][microbatch]
    std::unordered_map<size_t, Queue> queues_;  ///< by channel
};

class ListRunner {
  public:
    ListRunner(TreePool& pool, const SymbolicModel& model, const Schedule& lowered, Channels channels)
        : model_(model), lowered_(lowered), mailbox_(lowered, model.edges.size(), channels) {
        check(lowered.num_stages() == model.num_stages(), "a schedule has the stages of its model");
        shared_.values.assign(model.ops.size(),
                              std::vector<Tree>(static_cast<size_t>(lowered.num_microbatches), kMissing));
        shared_.gradients.assign(static_cast<size_t>(model.num_parameters()), kUndefined);
        shared_.buffers.assign(model.ops.size(), kUndefined);
        shared_.num_runs.assign(model.ops.size(), std::vector<int>(static_cast<size_t>(lowered.num_microbatches), 0));
        for (int stage = 0; stage < model.num_stages(); ++stage) {
            stages_.emplace_back(pool, model, stage, lowered.num_microbatches, shared_);
        }
    }

    SymbolicStep run() {
        std::vector<size_t> next(lowered_.actions.size(), 0);
        for (bool progress = true; progress;) {
            progress = false;
            for (size_t rank = 0; rank < next.size(); ++rank) {
                const std::vector<Action>& list = lowered_.actions[rank];
                for (; next[rank] < list.size() && act(static_cast<int>(rank), list[next[rank]]); ++next[rank]) {
                    progress = true;
                }
            }
        }
        for (size_t rank = 0; rank < next.size(); ++rank) {
            if (next[rank] == lowered_.actions[rank].size()) continue;
            add_problem("rank " + std::to_string(rank) + " waits for ever at " +
                        to_text(lowered_.actions[rank][next[rank]]));
        }
        return std::move(shared_);
    }

  private:
    void add_problem(const std::string& problem) {
        if (shared_.problems.size() < kMostProblems) shared_.problems.push_back(problem);
    }

    int rank_of(int stage) const { return lowered_.rank_of_stage[static_cast<size_t>(stage)]; }
    SymbolicStage& stage(int number) { return stages_[static_cast<size_t>(number)]; }

    /// What keeps an action from running at all, empty when nothing does.
    std::string fault(int rank, const Action& action) const {
        if (action.stage < 0 || action.stage >= lowered_.num_stages()) return " names no stage";
        if (rank_of(action.stage) != rank) return " has no stage to run on";
        if (action.kind == ActionKind::ReduceGrad) return "";
        if (action.microbatch < 0 || action.microbatch >= lowered_.num_microbatches) return " names no microbatch";
        if (!is_transfer(action.kind)) return "";
        if (action.edge < 0 || action.edge >= static_cast<int>(model_.edges.size())) return " names no edge";
        return action.peer < 0 || action.peer >= lowered_.num_ranks ? " names no rank" : "";
    }

    /// False: it has to wait.
    bool act(int rank, const Action& action) {
        if (const std::string why = fault(rank, action); !why.empty()) {
            add_problem("rank " + std::to_string(rank) + ": " + to_text(action) + why);
        } else if (is_receive(action.kind)) {
            if (!mailbox_.has(rank, action)) return false;
            const SymbolicEdge& edge = model_.edges[static_cast<size_t>(action.edge)];
            stage(action.stage)
                .put(edge, carries_gradient(action.kind), action.microbatch, mailbox_.take(rank, action));
        } else if (is_send(action.kind)) {
            const SymbolicEdge& edge = model_.edges[static_cast<size_t>(action.edge)];
            mailbox_.send(rank, action,
                          stage(action.stage).get(edge, carries_gradient(action.kind), action.microbatch));
        } else if (action.kind == ActionKind::ReduceGrad) {
            stage(action.stage).reduce();
        } else {
            stage(action.stage).compute(action.kind, action.microbatch);
            hand_over(action);
        }
        return true;
    }

    /// To stages on the same rank.
    void hand_over(const Action& action) {
        for (const SymbolicEdge& edge : model_.edges) {
            hand_over(action, edge, {edge.edge.id, false, edge.edge.producer, edge.edge.consumer});
            hand_over(action, edge, {edge.edge.id, true, edge.edge.consumer, edge.edge.gradient_to, edge.edge.tied});
        }
    }
    void hand_over(const Action& action, const SymbolicEdge& edge, const Route& route) {
        const bool exists = route.gradient ? edge.edge.has_gradient : !edge.edge.tied;
        if (!exists || route.from != action.stage || !route.ends_at(action.kind)) return;
        if (rank_of(route.from) != rank_of(route.to)) return;
        const Tree tree = stage(route.from).get(edge, route.gradient, action.microbatch);
        stage(route.to).put(edge, route.gradient, action.microbatch, tree);
    }

    const SymbolicModel& model_;
    const Schedule& lowered_;
    Mailbox mailbox_;
    SymbolicStep shared_;
    std::vector<SymbolicStage> stages_;
};

bool has_reduction(const Schedule& lowered) {
    for (const std::vector<Action>& list : lowered.actions) {
        for (const Action& action : list) {
            if (action.kind == ActionKind::ReduceGrad) return true;
        }
    }
    return false;
}

/// One backward pass of the whole model as autograd does it; gives the gradient of every parameter.
std::vector<Tree> backward_on_one_device(TreePool& pool, const SymbolicModel& model,
                                         const std::vector<std::vector<Tree>>& values, size_t microbatch) {
    std::vector<Tree> of_value(model.ops.size(), kUndefined), of_parameter(model.owner.size(), kUndefined);
    of_value.back() = pool.make({TreeKind::Seed, static_cast<int>(microbatch), 0, 0, 0});
    for (size_t k = model.ops.size(); k-- > 0;) {
        const SymbolicOp& op = model.ops[k];
        if (of_value[k] == kUndefined || !model.is_trained[k]) continue;
        const auto number = static_cast<int>(k);
        const Tree saved = pool.node(values[k][microbatch]).left;
        for (size_t slot = 0; slot < op.inputs.size(); ++slot) {
            const auto input = static_cast<size_t>(op.inputs[slot]);
            if (!model.is_trained[input]) continue;
            const Tree term = pool.make({TreeKind::InputGradient, number, static_cast<int>(slot), of_value[k], saved});
            of_value[input] = pool.sum(of_value[input], term);
        }
        if (op.parameter < 0) continue;
        Tree& sum = of_parameter[static_cast<size_t>(op.parameter)];
        sum = pool.sum(sum, pool.make({TreeKind::WeightGradient, number, 0, of_value[k], saved}));
    }
    return of_parameter;
}

}  // namespace

SymbolicStep run_on_one_device(TreePool& pool, const SymbolicModel& model, int num_microbatches, bool forward_only,
                               bool reduced) {
    SymbolicStep step;
    step.values.assign(model.ops.size(), {});
    step.buffers.assign(model.ops.size(), kUndefined);
    step.num_runs.assign(model.ops.size(), std::vector<int>(static_cast<size_t>(num_microbatches), 1));
    step.gradients.assign(model.owner.size(), kUndefined);
    for (int i = 0; i < num_microbatches; ++i) {
        const auto value = [&](int op) { return step.values[static_cast<size_t>(op)].back(); };
        for (size_t k = 0; k < model.ops.size(); ++k) {
            const Tree made = make_value(pool, model, static_cast<int>(k), i, 0, value);
            if (model.ops[k].has_buffer) {
                step.buffers[k] = pool.make({TreeKind::Buffer, static_cast<int>(k), 0, step.buffers[k], made});
            }
            step.values[k].push_back(made);
        }
        if (forward_only) continue;
        const std::vector<Tree> gradients = backward_on_one_device(pool, model, step.values, static_cast<size_t>(i));
        for (size_t p = 0; p < gradients.size(); ++p) {
            step.gradients[p] = pool.sum(step.gradients[p], gradients[p]);
        }
    }
    for (Tree& gradient : step.gradients) {
        if (reduced) gradient = pool.make({TreeKind::Reduced, 0, 0, gradient, 0});
    }
    return step;
}

SymbolicStep run_lists(TreePool& pool, const SymbolicModel& model, const Schedule& lowered, Channels channels) {
    return ListRunner(pool, model, lowered, channels).run();
}

std::vector<std::string> symbolic_differences(const SymbolicModel& model, const Schedule& lowered, Channels channels) {
    TreePool pool;
    const SymbolicStep expected =
        run_on_one_device(pool, model, lowered.num_microbatches, lowered.forward_only, has_reduction(lowered));
    const SymbolicStep got = run_lists(pool, model, lowered, channels);
    std::vector<std::string> differences = got.problems;
    const auto compare = [&](Tree one, Tree other, int stage, const std::string& what) {
        if (one == other || differences.size() >= kMostProblems) return;
        differences.push_back("stage " + std::to_string(stage) + ", " + what + ": " + pool.difference_text(one, other));
    };
    for (int p = 0; p < model.num_parameters(); ++p) {
        const auto at = static_cast<size_t>(p);
        compare(got.gradients[at], expected.gradients[at], model.owner[at],
                "gradient of parameter " + std::to_string(p));
    }
    for (size_t k = 0; k < model.ops.size(); ++k) {
        const int stage = model.stage_of(static_cast<int>(k));
        for (size_t i = 0; i < expected.values[k].size(); ++i) {
            compare(got.values[k][i], expected.values[k][i], stage,
                    "value " + std::to_string(k) + " of microbatch " + std::to_string(i));
        }
        compare(got.buffers[k], expected.buffers[k], stage, "buffer of op " + std::to_string(k));
        const int num_recomputes = model.segment_of[k] >= 0 && !lowered.forward_only ? 1 : 0;
        for (size_t i = 0; i < expected.num_runs[k].size(); ++i) {
            const int num_runs = expected.num_runs[k][i] + num_recomputes;
            if (got.num_runs[k][i] == num_runs || differences.size() >= kMostProblems) continue;
            differences.push_back("stage " + std::to_string(stage) + ", op " + std::to_string(k) + " of microbatch " +
                                  std::to_string(i) + ": its forward is done " + std::to_string(got.num_runs[k][i]) +
                                  " times instead of " + std::to_string(num_runs));
        }
    }
    return differences;
}

}  // namespace vpp
