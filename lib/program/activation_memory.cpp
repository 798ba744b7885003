#include "program/activation_memory.hpp"

#include <algorithm>
#include <set>

namespace vpp {

namespace {

/// Which ops of a segment the gradients of its inputs run through, and what the others leave to W.
class InputPath {
  public:
    InputPath(const Graph& graph, OpRange ops) : graph_(graph) {
        for (int op = ops.begin; op < ops.end; ++op) add(op);
    }

    bool is_there() const { return is_there_; }
    /// Gradients that arrive where a branch towards weights leaves the path.
    int64_t captured_bytes() const { return captured_; }
    /// What waits for W beside what ops with weights of their own read (SegmentSpec::waiting_bytes).
    int64_t more_waiting_bytes() const { return more_waiting_; }

  private:
    struct Taken {
        bool from_path = false, beside_it = false;
    };

    void add(int index) {
        const GraphOp& op = graph_.ops[static_cast<size_t>(index)];
        const Taken taken = taken_by(op, index);
        int64_t gradients = 0;
        for (int tensor : tensors_of(op.outputs)) {
            made_.insert(tensor);
            if (!requires_gradient(tensor)) continue;
            gradients += graph_.tensors[static_cast<size_t>(tensor)].bytes();
            if (taken.from_path) on_path_.insert(tensor);
        }
        if (gradients == 0) return;
        const bool trains = std::ranges::any_of(op.parameters, [&](int parameter) {
            return graph_.parameters[static_cast<size_t>(parameter)].requires_grad;
        });
        is_there_ = is_there_ || taken.from_path;
        if (!taken.from_path) {
            more_waiting_ += trains ? 0 : op.kept_bytes;
            return;
        }
        if (!trains && !taken.beside_it) return;
        captured_ += gradients;
        more_waiting_ += trains ? 0 : gradients + op.kept_bytes;
    }

    Taken taken_by(const GraphOp& op, int index) const {
        Taken taken;
        for (int id : tensors_of(op.inputs)) {
            const GraphTensor& tensor = graph_.tensors[static_cast<size_t>(id)];
            if (tensor.parameter >= 0 || !tensor.requires_grad_at(index)) continue;
            const bool is_own = made_.contains(id) && !on_path_.contains(id);
            (is_own ? taken.beside_it : taken.from_path) = true;
        }
        return taken;
    }

    std::vector<int> tensors_of(const std::vector<int>& values) const {
        std::vector<int> all;
        for (int value : values) {
            const std::vector<int>& own = graph_.values[static_cast<size_t>(value)].tensors;
            all.insert(all.end(), own.begin(), own.end());
        }
        return all;
    }

    bool requires_gradient(int tensor) const { return graph_.tensors[static_cast<size_t>(tensor)].requires_grad; }

    const Graph& graph_;
    std::set<int> made_, on_path_;
    bool is_there_ = false;
    int64_t captured_ = 0, more_waiting_ = 0;
};

/// Where a backward starts that has no half of its own for the inputs.
int64_t arriving_bytes(const Split& split, int segment) {
    int64_t bytes = 0;
    for (const Edge& edge : split.edges) {
        const bool arrives = edge.has_gradient && !edge.is_tied() && edge.segments.gradient_to == segment;
        if (arrives) bytes += edge.bytes;
    }
    return bytes;
}

}  // namespace

ActivationMemory::ActivationMemory(const Plan& plan, const Graph& graph, const Split& split)
    : stages_(split.stages.size()), is_last_recomputed_(!plan.pipeline.recompute.except_last) {
    for (size_t i = 0; i < split.segments.size(); ++i) {
        const SegmentSpec& spec = split.segments[i];
        const InputPath path(graph, spec.ops);
        Segment segment;
        segment.recompute = spec.recompute;
        segment.gives_input_gradients = path.is_there();
        segment.activation = spec.activation_bytes;
        segment.input = spec.input_bytes;
        segment.made_again = spec.kept_bytes;
        segment.passing = spec.passing_bytes;
        segment.working = spec.working_bytes;
        segment.captured = path.captured_bytes();
        if (path.is_there()) {
            segment.waiting = spec.waiting_bytes + path.more_waiting_bytes();
        } else {
            segment.waiting = arriving_bytes(split, static_cast<int>(i)) +
                              (spec.recompute ? spec.input_bytes + spec.kept_bytes : spec.activation_bytes);
        }
        stages_[static_cast<size_t>(spec.stage)].push_back(segment);
    }
}

ActivationMemory::Change ActivationMemory::change_of(const Segment& segment, ActionKind kind, bool again) {
    const int64_t kept = again ? segment.input : segment.activation;
    const int64_t made_again = again ? segment.made_again : 0;
    const int64_t working = std::max(segment.working, again ? segment.passing : 0);
    switch (kind) {
        case ActionKind::F:
            return {kept + made_again + segment.passing, kept};
        case ActionKind::I:
            if (!segment.gives_input_gradients) return {made_again + (again ? working : 0), segment.waiting - kept};
            return {made_again + segment.captured + working, segment.waiting - kept};
        case ActionKind::W:
            return {working, -segment.waiting};
        case ActionKind::B:
            return {made_again + working, -kept};
        default:
            return {};
    }
}

int64_t ActivationMemory::peak_bytes(const Schedule& schedule, size_t rank) const {
    const int num_recomputed = schedule.num_microbatches - (is_last_recomputed_ ? 0 : 1);
    int64_t now = 0, peak = 0;
    for (const Action& action : schedule.actions[rank]) {
        if (!is_computing(action.kind)) continue;
        const std::vector<Segment>& segments = stages_[static_cast<size_t>(action.stage)];
        for (size_t i = 0; i < segments.size(); ++i) {
            const bool forward = action.kind == ActionKind::F;
            const Segment& segment = forward ? segments[i] : segments[segments.size() - 1 - i];
            const bool again = segment.recompute && action.microbatch < num_recomputed;
            const Change change = change_of(segment, action.kind, again);
            peak = std::max(peak, now + std::max(change.during, change.behind));
            now += change.behind;
        }
    }
    return peak;
}

int64_t ActivationMemory::peak_bytes(const Schedule& schedule) const {
    int64_t peak = 0;
    for (size_t rank = 0; rank < schedule.actions.size(); ++rank) peak = std::max(peak, peak_bytes(schedule, rank));
    return peak;
}

int64_t ActivationMemory::kept_bytes(int stage) const {
    int64_t bytes = 0;
    for (const Segment& segment : stages_[static_cast<size_t>(stage)]) {
        const bool is_always_again = segment.recompute && is_last_recomputed_;
        bytes += is_always_again ? segment.input : segment.activation;
    }
    return bytes;
}

int64_t ActivationMemory::most_kept_bytes(bool with_halves) const {
    int64_t most = 0;
    for (int stage = 0; stage < num_stages(); ++stage) {
        int64_t waiting = 0;
        for (const Segment& segment : stages_[static_cast<size_t>(stage)]) {
            const int64_t kept = segment.recompute && is_last_recomputed_ ? segment.input : segment.activation;
            waiting += std::max(kept, segment.waiting);
        }
        most = std::max(most, with_halves ? waiting : kept_bytes(stage));
    }
    return most;
}

int64_t ActivationMemory::most_working_bytes(bool with_halves) const {
    int64_t most = 0;
    for (const std::vector<Segment>& segments : stages_) {
        for (const Segment& segment : segments) {
            const int64_t again = segment.recompute ? segment.made_again + segment.passing : 0;
            const int64_t backward = segment.working + (with_halves ? segment.captured : 0);
            most = std::max(most, std::max(segment.passing, backward) + again);
        }
    }
    return most;
}

}  // namespace vpp
