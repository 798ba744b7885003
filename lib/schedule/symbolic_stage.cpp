#include "schedule/symbolic_stage.hpp"

#include "schedule/symbolic.hpp"

namespace vpp {

Tree make_value(TreePool& pool, const SymbolicModel& model, int k, int microbatch, int execution,
                const std::function<Tree(int op)>& input) {
    const SymbolicOp& op = model.ops[static_cast<size_t>(k)];
    Tree list = kUndefined;
    const auto prepend = [&](Tree part) { list = pool.make({TreeKind::List, 0, 0, part, list}); };
    if (op.random) prepend(pool.make({TreeKind::Random, k, microbatch, static_cast<Tree>(execution), 0}));
    if (op.parameter >= 0) prepend(pool.make({TreeKind::Weight, op.parameter, 0, 0, 0}));
    if (op.inputs.empty()) prepend(pool.make({TreeKind::Data, microbatch, 0, 0, 0}));
    for (size_t slot = op.inputs.size(); slot-- > 0;) prepend(input(op.inputs[slot]));
    return pool.make({TreeKind::Value, k, 0, list, 0});
}

SymbolicStage::SymbolicStage(TreePool& pool, const SymbolicModel& model, int stage, int num_microbatches,
                             SymbolicStep& step)
    : pool_(pool),
      model_(model),
      stage_(stage),
      first_(model.first_op[static_cast<size_t>(stage)]),
      end_(model.end_op(stage)),
      step_(step),
      is_used_outside_(model.ops.size(), false) {
    for (const SymbolicSegment& segment : model.segments) {
        if (model.stage_of(segment.begin) == stage) segments_.push_back(segment);
    }
    for (int k = first_; k < end_; ++k) {
        for (int input : model.ops[static_cast<size_t>(k)].inputs) {
            if (segment_of(input) != segment_of(k)) is_used_outside_[static_cast<size_t>(input)] = true;
        }
    }
    Held none{Phase::Nothing, std::vector<Tree>(model.ops.size(), kMissing),
              std::vector<Tree>(model.ops.size(), kMissing), std::vector<Tree>(model.ops.size(), kUndefined),
              std::vector<Tree>(model.owner.size(), kUndefined)};
    for (const SymbolicEdge& edge : model.edges) {
        if (edge.edge.gradient_to != stage || !edge.edge.has_gradient) continue;
        std::vector<Tree>& awaited = edge.edge.tied ? none.tied_gradients : none.value_gradients;
        awaited[static_cast<size_t>(edge.edge.tied ? edge.parameter : edge.value)] = kMissing;
    }
    held_.assign(static_cast<size_t>(num_microbatches), none);
}

void SymbolicStage::put(const SymbolicEdge& edge, bool gradient, int microbatch, Tree tree) {
    Held& here = held(microbatch);
    if (edge.edge.tied) {
        here.tied_gradients[static_cast<size_t>(edge.parameter)] = tree;
    } else {
        (gradient ? here.value_gradients : here.values)[static_cast<size_t>(edge.value)] = tree;
    }
}

Tree SymbolicStage::get(const SymbolicEdge& edge, bool gradient, int microbatch) const {
    const Held& here = held_[static_cast<size_t>(microbatch)];
    if (edge.edge.tied) {
        const bool made = here.phase == Phase::Done;
        return made ? here.tied_gradients[static_cast<size_t>(edge.parameter)] : kMissing;
    }
    if (!gradient) return step_.values[static_cast<size_t>(edge.value)][static_cast<size_t>(microbatch)];
    const bool made = here.phase == Phase::InputGradient || here.phase == Phase::Done;
    return made ? here.value_gradients[static_cast<size_t>(edge.value)] : kMissing;
}

void SymbolicStage::compute(ActionKind kind, int microbatch) {
    if (kind == ActionKind::F) forward(microbatch);
    if (gives_input_gradient(kind)) input_gradients(microbatch);
    if (gives_weight_gradient(kind)) weight_gradients(microbatch);
}

void SymbolicStage::forward(int microbatch) {
    for (int k = first_; k < end_; ++k) run_op(k, microbatch, false);
    for (const SymbolicSegment& segment : segments_) drop(segment, microbatch);
    held(microbatch).phase = Phase::Forward;
}

/// `again`: in a recompute, which makes the same value but does not give it to anyone.
void SymbolicStage::run_op(int k, int microbatch, bool again) {
    const auto at = static_cast<size_t>(k);
    Held& here = held(microbatch);
    int& num_runs = step_.num_runs[at][static_cast<size_t>(microbatch)];
    const int execution = again && !model_.recompute.repeats_keys ? num_runs : 0;
    const auto input = [&](int op) { return here.values[static_cast<size_t>(op)]; };
    const Tree made = make_value(pool_, model_, k, microbatch, execution, input);
    ++num_runs;
    here.values[at] = made;
    here.saved[at] = pool_.node(made).left;
    if (!again) step_.values[at][static_cast<size_t>(microbatch)] = made;
    const bool advances = !again || !model_.recompute.keeps_buffers;
    if (!advances || !model_.ops[at].has_buffer) return;
    step_.buffers[at] = pool_.make({TreeKind::Buffer, k, 0, step_.buffers[at], made});
}

/// What a segment does not keep.
void SymbolicStage::drop(const SymbolicSegment& segment, int microbatch) {
    Held& here = held(microbatch);
    for (int k = segment.begin; k < segment.end; ++k) {
        const auto at = static_cast<size_t>(k);
        here.saved[at] = kMissing;
        if (!is_used_outside_[at]) here.values[at] = kMissing;
    }
}

void SymbolicStage::recompute(const SymbolicSegment& segment, int microbatch) {
    for (int k = segment.begin; k < segment.end; ++k) run_op(k, microbatch, true);
}

void SymbolicStage::input_gradients(int microbatch) {
    Held& here = held(microbatch);
    const bool is_ready = here.phase == Phase::Forward;
    auto segment = segments_.rbegin();
    std::vector<Tree>& sums = here.value_gradients;
    if (end_ == static_cast<int>(model_.ops.size())) sums.back() = pool_.make({TreeKind::Seed, microbatch, 0, 0, 0});
    for (int k = end_ - 1; k >= first_; --k) {
        const auto at = static_cast<size_t>(k);
        const SymbolicOp& op = model_.ops[at];
        const bool enters_segment = segment != segments_.rend() && segment->end == k + 1;
        if (enters_segment && is_ready) recompute(*segment, microbatch);
        if (enters_segment) ++segment;
        if (sums[at] == kUndefined || !model_.is_trained[at]) continue;
        const Tree kept = is_ready ? here.saved[at] : kMissing;
        for (size_t slot = 0; slot < op.inputs.size(); ++slot) {
            const auto input = static_cast<size_t>(op.inputs[slot]);
            if (!model_.is_trained[input]) continue;
            const Tree term = pool_.make({TreeKind::InputGradient, k, static_cast<int>(slot), sums[at], kept});
            sums[input] = pool_.sum(sums[input], term);
        }
    }
    here.phase = Phase::InputGradient;
}

/// A mistake: what the segments made at I is thrown away and made again for W.
void SymbolicStage::recompute_for_weights(int microbatch) {
    for (const SymbolicSegment& segment : segments_) {
        drop(segment, microbatch);
        recompute(segment, microbatch);
    }
}

void SymbolicStage::weight_gradients(int microbatch) {
    Held& here = held(microbatch);
    const bool is_ready = here.phase == Phase::InputGradient;
    if (is_ready && !model_.recompute.is_kept_to_weight) recompute_for_weights(microbatch);
    std::vector<Tree>& sums = here.tied_gradients;
    for (int k = end_ - 1; k >= first_; --k) {
        const auto at = static_cast<size_t>(k);
        const SymbolicOp& op = model_.ops[at];
        if (op.parameter < 0 || !model_.is_trained[at]) continue;
        const Tree gradient = is_ready ? here.value_gradients[at] : kMissing;
        if (gradient == kUndefined) continue;
        const Tree kept = is_ready ? here.saved[at] : kMissing;
        Tree& sum = sums[static_cast<size_t>(op.parameter)];
        sum = pool_.sum(sum, pool_.make({TreeKind::WeightGradient, k, 0, gradient, kept}));
    }
    here.phase = Phase::Done;
    take_turn(microbatch, sums);
}

/// Gradients are added in microbatch order; what is early waits.
void SymbolicStage::take_turn(int microbatch, std::vector<Tree> gradients) {
    if (microbatch > next_) {
        parked_[microbatch] = std::move(gradients);
        return;
    }
    add(gradients);
    if (microbatch < next_) return;  // it came twice
    for (++next_; parked_.count(next_); ++next_) {
        add(parked_[next_]);
        parked_.erase(next_);
    }
}

void SymbolicStage::add(const std::vector<Tree>& gradients) {
    for (size_t p = 0; p < gradients.size(); ++p) {
        if (model_.owner[p] == stage_) step_.gradients[p] = pool_.sum(step_.gradients[p], gradients[p]);
    }
}

void SymbolicStage::reduce() {
    for (size_t p = 0; p < model_.owner.size(); ++p) {
        if (model_.owner[p] != stage_) continue;
        step_.gradients[p] = pool_.make({TreeKind::Reduced, 0, 0, step_.gradients[p], 0});
    }
}

}  // namespace vpp
