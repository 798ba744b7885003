#include "schedule/symbolic_model.hpp"

#include <algorithm>
#include <functional>

#include "base/error.hpp"
#include "base/random.hpp"

namespace vpp {

namespace {

/// The edges of what `users` (stages, ascending) share: from the first to each other one.
void append_edges(const std::vector<int>& users, bool has_gradient, int value, int parameter,
                  std::vector<SymbolicEdge>& edges) {
    for (size_t k = 1; k < users.size(); ++k) {
        const ScheduleEdge edge{
            static_cast<int>(edges.size()), users[0], users[k], has_gradient, users[k - 1], parameter >= 0};
        edges.push_back({edge, value, parameter});
    }
}

void append_once(std::vector<int>& stages, int stage) {
    if (stages.empty() || stages.back() != stage) stages.push_back(stage);
}

/// The number of each op's segment.
std::vector<int> number_segments(const SymbolicModel& model) {
    std::vector<int> segment_of(model.ops.size(), -1);
    int behind = 0;
    for (size_t number = 0; number < model.segments.size(); ++number) {
        const SymbolicSegment& segment = model.segments[number];
        check(segment.begin >= behind && segment.begin < segment.end, "segments are ascending and not empty");
        check(segment.end <= model.end_op(model.stage_of(segment.begin)), "a segment ends before the next cut");
        for (int k = segment.begin; k < segment.end; ++k) segment_of[static_cast<size_t>(k)] = static_cast<int>(number);
        behind = segment.end;
    }
    return segment_of;
}

}  // namespace

int SymbolicModel::stage_of(int op) const {
    return static_cast<int>(std::upper_bound(first_op.begin(), first_op.end(), op) - first_op.begin()) - 1;
}

int SymbolicModel::end_op(int stage) const {
    const bool is_last = stage + 1 == num_stages();
    return is_last ? static_cast<int>(ops.size()) : first_op[static_cast<size_t>(stage) + 1];
}

std::vector<ScheduleEdge> SymbolicModel::schedule_edges() const {
    std::vector<ScheduleEdge> plain;
    for (const SymbolicEdge& edge : edges) plain.push_back(edge.edge);
    return plain;
}

SymbolicModel finish(SymbolicModel model) {
    std::vector<std::vector<int>> users_of_value(model.ops.size()), users_of_parameter;
    model.is_trained.clear();
    for (size_t k = 0; k < model.ops.size(); ++k) {
        const SymbolicOp& op = model.ops[k];
        const int stage = model.stage_of(static_cast<int>(k));
        bool is_trained = op.parameter >= 0;
        append_once(users_of_value[k], stage);
        for (int input : op.inputs) {
            check(input >= 0 && input < static_cast<int>(k), "an op uses earlier values");
            append_once(users_of_value[static_cast<size_t>(input)], stage);
            is_trained = is_trained || model.is_trained[static_cast<size_t>(input)];
        }
        model.is_trained.push_back(is_trained && op.differentiable);
        if (op.parameter < 0) continue;
        if (static_cast<size_t>(op.parameter) == users_of_parameter.size()) users_of_parameter.emplace_back();
        append_once(users_of_parameter.at(static_cast<size_t>(op.parameter)), stage);
    }
    model.segment_of = number_segments(model);
    model.edges.clear();
    model.owner.clear();
    for (size_t k = 0; k < model.ops.size(); ++k) {
        append_edges(users_of_value[k], model.is_trained[k], static_cast<int>(k), -1, model.edges);
    }
    for (size_t p = 0; p < users_of_parameter.size(); ++p) {
        model.owner.push_back(users_of_parameter[p].front());
        append_edges(users_of_parameter[p], true, -1, static_cast<int>(p), model.edges);
    }
    return model;
}

namespace {

/// Segments of one to three ops over the last stage, some ops left out between them.
void append_segments(SymbolicModel& model, const std::function<int(int bound)>& draw) {
    const int end = static_cast<int>(model.ops.size());
    for (int begin = model.first_op.back() + draw(2); begin < end;) {
        model.segments.push_back({begin, std::min(begin + 1 + draw(3), end)});
        begin = model.segments.back().end + draw(2);
    }
}

}  // namespace

SymbolicModel make_random_model(int num_stages, uint64_t seed, const RandomModelOptions& options) {
    uint64_t key = mix64(seed);
    const auto draw = [&](int bound) { return static_cast<int>((key = mix64(key)) % static_cast<uint64_t>(bound)); };
    const auto one_in = [&](int n) { return draw(n) == 0; };
    SymbolicModel model;
    int num_parameters = 0, first_of_stage = 0;  // parameters of this stage start at first_of_stage
    for (int stage = 0; stage < num_stages; ++stage) {
        model.first_op.push_back(static_cast<int>(model.ops.size()));
        const bool recomputes = one_in(2);
        first_of_stage = num_parameters;
        for (int count = 1 + draw(options.most_ops_per_stage); count > 0; --count) {
            const int number = static_cast<int>(model.ops.size());
            SymbolicOp op{{}, -1, !one_in(12), one_in(4), one_in(4)};
            for (int input = number > 0 ? 1 + draw(3) : 0; input > 0; --input) {
                op.inputs.push_back(one_in(2) ? number - 1 : draw(number));
            }
            const int first = options.tied ? 0 : first_of_stage;
            if (!one_in(4))
                op.parameter =
                    num_parameters > first && one_in(3) ? first + draw(num_parameters - first) : num_parameters++;
            model.ops.push_back(std::move(op));
        }
        if (recomputes) append_segments(model, draw);
    }
    model.ops.back().differentiable = true;
    if (model.ops.back().parameter < 0) model.ops.back().parameter = num_parameters++;
    return finish(std::move(model));
}

}  // namespace vpp
