#include "graph/stages.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/error.hpp"

namespace vpp {

namespace {

constexpr int64_t kHeaderBytes = 1024;       // of a message, around its tensor
constexpr int64_t kBundleBytes = 64 * 1024;  // room for a bundle of numbers, flags and the structure of containers

class StageMaker {
  public:
    StageMaker(const Graph& graph, const std::vector<int>& cuts, const std::vector<OpRange>& recomputed)
        : graph_(graph) {
        split_.cuts = cuts;
        int begin = 0;
        for (int cut : cuts) {
            add_stage(begin, cut);
            begin = cut;
        }
        add_stage(begin, graph.num_ops());
        add_segments(recomputed);
    }

    Split make() {
        for (int op = 0; op < graph_.num_ops(); ++op) add_op(op);
        for (size_t i = 0; i < graph_.parameters.size(); ++i) place_parameter(static_cast<int>(i));
        const int loss_producer = graph_.values[static_cast<size_t>(graph_.loss)].producer;
        split_.loss_stage = split_.stage_of_op(loss_producer);
        add_tensor_edges();
        add_bundles();
        for (size_t i = 0; i < graph_.parameters.size(); ++i) add_tied_edges(static_cast<int>(i));
        for (const Edge& edge : split_.edges) {
            if (edge.tensor >= 0) take_in(edge.segments.consumer, edge.bytes, edge.producer != edge.consumer);
        }
        check_cover();
        return std::move(split_);
    }

  private:
    void add_stage(int begin, int end) {
        check(begin < end && end <= graph_.num_ops(), "cuts ascend and leave no stage empty");
        StageSpec stage;
        stage.ops = {begin, end};
        split_.stages.push_back(std::move(stage));
    }

    /// The recomputed ranges, and what lies between them.
    void add_segments(const std::vector<OpRange>& recomputed) {
        auto next = recomputed.begin();
        for (int index = 0; index < split_.num_stages(); ++index) {
            const OpRange ops = stage(index).ops;
            int begin = ops.begin;
            for (; next != recomputed.end() && next->begin < ops.end; ++next) {
                check(begin <= next->begin && next->begin < next->end && next->end <= ops.end,
                      "recomputed ranges ascend and lie inside one stage each");
                add_segment({begin, next->begin}, index, false);
                add_segment(*next, index, true);
                begin = next->end;
            }
            add_segment({begin, ops.end}, index, false);
        }
        check(next == recomputed.end(), "recomputed ranges lie inside the model");
    }

    void add_segment(OpRange ops, int stage, bool recompute) {
        if (ops.begin == ops.end) return;
        SegmentSpec segment;
        segment.ops = ops;
        segment.stage = stage;
        segment.recompute = recompute;
        split_.segments.push_back(std::move(segment));
    }

    StageSpec& stage(int index) { return split_.stages[static_cast<size_t>(index)]; }
    SegmentSpec& segment(int index) { return split_.segments[static_cast<size_t>(index)]; }
    int stage_of(int index) const { return split_.segments[static_cast<size_t>(index)].stage; }

    void add_op(int index) {
        const GraphOp& op = graph_.ops[static_cast<size_t>(index)];
        StageSpec& owner = stage(split_.stage_of_op(index));
        SegmentSpec& part = segment(split_.segment_of_op(index));
        owner.flops += op.flops;
        owner.activation_bytes += op.kept_bytes;
        part.kept_bytes += op.kept_bytes;
        part.passing_bytes = std::max(part.passing_bytes - op.kept_bytes, op.passing_bytes);
        part.activation_bytes += op.kept_bytes;
        int64_t cast_bytes = 0;  // their gradients come in half precision too
        for (int parameter : op.casts) {
            const int64_t bytes = graph_.parameters[static_cast<size_t>(parameter)].cast_bytes();
            const bool is_new = !part.recompute && cast_.emplace(part.ops.begin, parameter).second;
            if (is_new) part.cast_bytes += bytes;
            cast_bytes += bytes;
        }
        if (part.recompute) {  // each microbatch casts them itself
            part.kept_bytes += cast_bytes;
            part.activation_bytes += cast_bytes;
        }
        part.working_bytes =
            std::max(part.working_bytes, bytes_with_gradient(op.inputs) + bytes_with_gradient(op.outputs) + cast_bytes);
        if (trains(op)) wait_for_weights(op, part);
        for (int value : op.inputs) {
            for (int tensor : graph_.values[static_cast<size_t>(value)].tensors) {
                const int input = graph_.tensors[static_cast<size_t>(tensor)].input;
                if (input < 0) continue;
                const bool is_new = add_input(owner.inputs, input);
                if (!add_input(part.inputs, input)) continue;
                take_in(split_.segment_of_op(index), graph_.tensors[static_cast<size_t>(tensor)].bytes(), is_new);
            }
        }
    }

    bool trains(const GraphOp& op) const {
        return std::any_of(op.parameters.begin(), op.parameters.end(), [&](int parameter) {
            return graph_.parameters[static_cast<size_t>(parameter)].requires_grad;
        });
    }

    /// An op's W reads what the op was given, and what is kept inside of it.
    void wait_for_weights(const GraphOp& op, SegmentSpec& part) {
        part.waiting_bytes += bytes_with_gradient(op.outputs) + op.inner_bytes;
        for (int value : op.inputs) {
            for (int id : graph_.values[static_cast<size_t>(value)].tensors) {
                const GraphTensor& tensor = graph_.tensors[static_cast<size_t>(id)];
                const bool is_new = tensor.parameter < 0 && read_by_weights_.emplace(part.ops.begin, id).second;
                if (is_new) part.waiting_bytes += tensor.bytes();
            }
        }
    }

    /// Parameters among them.
    int64_t bytes_with_gradient(const std::vector<int>& values) const {
        return bytes_where(values, [](const GraphTensor& tensor) { return tensor.requires_grad; });
    }

    template <typename Counts>
    int64_t bytes_where(const std::vector<int>& values, const Counts& counts) const {
        int64_t bytes = 0;
        for (int value : values) {
            for (int id : graph_.values[static_cast<size_t>(value)].tensors) {
                const GraphTensor& tensor = graph_.tensors[static_cast<size_t>(id)];
                if (counts(tensor)) bytes += tensor.bytes();
            }
        }
        return bytes;
    }

    /// Gives whether it is not among them yet.
    static bool add_input(std::vector<int>& inputs, int input) {
        const bool is_new = std::find(inputs.begin(), inputs.end(), input) == inputs.end();
        if (is_new) inputs.push_back(input);
        std::sort(inputs.begin(), inputs.end());
        return is_new;
    }

    /// What comes to a segment is kept for its backward; in the memory of its stage unless another part of it has it.
    void take_in(int index, int64_t bytes, bool is_new_in_stage) {
        segment(index).input_bytes += bytes;
        if (!is_new_in_stage) return;
        segment(index).activation_bytes += bytes;
        stage(stage_of(index)).activation_bytes += bytes;
    }

    void place_parameter(int index) {
        const GraphParameter& parameter = graph_.parameters[static_cast<size_t>(index)];
        const std::set<int> users = segments_that_use(parameter.uses);
        const int owner = users.empty() ? 0 : stage_of(*users.begin());
        stage(owner).parameters.push_back(index);
        (parameter.is_buffer ? stage(owner).buffer_bytes : stage(owner).parameter_bytes) += parameter.bytes();
        if (!parameter.is_buffer) stage(owner).num_parameters += num_elements(parameter.shape);
        check(users.size() <= 1 || !parameter.written, "a written tensor is used by one stage");
        std::set<int> stages;
        for (int user : users) stages.insert(stage_of(user));
        for (int user : stages) {
            if (user != owner) stage(user).borrowed.push_back(index);
        }
    }

    std::set<int> segments_that_use(const std::vector<int>& ops) const {
        std::set<int> users;
        for (int op : ops) users.insert(split_.segment_of_op(op));
        return users;
    }

    Edge new_edge(int producer, int consumer, int gradient_to) const {
        Edge edge;
        edge.producer = stage_of(producer);
        edge.consumer = stage_of(consumer);
        edge.gradient_to = stage_of(gradient_to);
        edge.segments = {producer, consumer, gradient_to};
        return edge;
    }

    /// From every segment with a copy of a trained parameter to the user before it.
    void add_tied_edges(int index) {
        const GraphParameter& parameter = graph_.parameters[static_cast<size_t>(index)];
        if (!parameter.requires_grad) return;
        const std::set<int> users = segments_that_use(parameter.uses);
        for (auto user = users.begin(); user != users.end(); ++user) {
            if (user == users.begin()) continue;
            Edge edge = new_edge(*users.begin(), *user, *std::prev(user));
            edge.name = parameter.name;
            edge.parameter = index;
            edge.has_gradient = true;
            edge.bytes = parameter.bytes();
            edge.message_bytes = parameter.bytes() + kHeaderBytes;
            append(std::move(edge));
        }
    }

    /// Segments that use a tensor through any of its values, ascending.
    std::vector<std::set<int>> users_of_tensors() const {
        std::vector<std::set<int>> users(graph_.tensors.size());
        for (const GraphValue& value : graph_.values) {
            for (int tensor : value.tensors) users[static_cast<size_t>(tensor)].merge(segments_that_use(value.uses));
        }
        const GraphValue& loss = graph_.values[static_cast<size_t>(graph_.loss)];
        for (int tensor : loss.tensors) users[static_cast<size_t>(tensor)].insert(split_.segment_of_op(loss.producer));
        return users;
    }

    /// A tensor enters a stage once and goes on from segment to segment there.
    void add_tensor_edges() {
        const std::vector<std::set<int>> users = users_of_tensors();
        for (size_t id = 0; id < graph_.tensors.size(); ++id) {
            const GraphTensor& tensor = graph_.tensors[id];
            if (tensor.producer < 0) continue;  // parameters and data are read by whoever needs them
            const int producer = split_.segment_of_op(tensor.producer);
            int source = producer, holder = producer;
            for (int user : users[id]) {
                if (user > producer) {
                    const bool inside = stage_of(holder) == stage_of(user);
                    add_tensor_edge(static_cast<int>(id), inside ? holder : source, user, holder);
                    holder = user;
                }
                if (writes(tensor, user)) source = user;
            }
        }
    }

    bool writes(const GraphTensor& tensor, int user) const {
        return std::any_of(tensor.writers.begin(), tensor.writers.end(),
                           [&](int op) { return split_.segment_of_op(op) == user; });
    }

    void add_tensor_edge(int id, int producer, int consumer, int gradient_to) {
        const GraphTensor& tensor = graph_.tensors[static_cast<size_t>(id)];
        Edge edge = new_edge(producer, consumer, gradient_to);
        edge.name = tensor.name;
        edge.tensor = id;
        edge.has_gradient = tensor.requires_grad_at(split_.segments[static_cast<size_t>(consumer)].ops.begin);
        edge.bytes = tensor.bytes();
        edge.message_bytes = tensor.message_bytes;
        append(std::move(edge));
    }

    /// Everything that is not a tensor: numbers, None, and the structure of lists and tuples, one message a pair. It
    /// enters a stage once, too.
    void add_bundles() {
        std::map<std::pair<int, int>, std::vector<int>> bundles;
        for (size_t i = 0; i < graph_.values.size(); ++i) {
            const GraphValue& value = graph_.values[i];
            if (value.is_tensor || value.producer < 0) continue;
            const int producer = split_.segment_of_op(value.producer);
            int holder = producer;
            for (int user : segments_that_use(value.uses)) {
                if (user <= producer) continue;
                bundles[{stage_of(holder) == stage_of(user) ? holder : producer, user}].push_back(static_cast<int>(i));
                holder = user;
            }
        }
        for (auto& [pair, values] : bundles) {
            Edge edge = new_edge(pair.first, pair.second, pair.first);
            edge.name = std::to_string(values.size()) + " plain value" + (values.size() == 1 ? "" : "s");
            edge.message_bytes = kBundleBytes;
            for (int value : values) {
                edge.message_bytes += 1024 + 2 * graph_.values[static_cast<size_t>(value)].plain_bytes;
            }
            edge.values = std::move(values);
            append(std::move(edge));
        }
    }

    void append(Edge edge) {
        edge.id = static_cast<int>(split_.edges.size());
        split_.edges.push_back(std::move(edge));
    }

    void check_cover() const {
        int next_op = 0;
        std::set<int> owned;
        int64_t bytes = 0, expected = 0;
        for (const StageSpec& stage : split_.stages) {
            check(stage.ops.begin == next_op, "stages follow each other without a gap");
            next_op = stage.ops.end;
            for (int parameter : stage.parameters) check(owned.insert(parameter).second, "a parameter has one owner");
            bytes += stage.parameter_bytes + stage.buffer_bytes;
        }
        for (const GraphParameter& parameter : graph_.parameters) expected += parameter.bytes();
        check(next_op == graph_.num_ops(), "every op is in a stage");
        check(owned.size() == graph_.parameters.size() && bytes == expected,
              "every parameter and buffer is in a stage");
    }

    const Graph& graph_;
    std::set<std::pair<int, int>> read_by_weights_;  ///< by segment's begin: tensors
    std::set<std::pair<int, int>> cast_;             ///< by segment's begin: parameters
    Split split_;
};

}  // namespace

int Split::stage_of_op(int op) const {
    return static_cast<int>(std::upper_bound(cuts.begin(), cuts.end(), op) - cuts.begin());
}

int Split::segment_of_op(int op) const {
    const auto behind =
        std::upper_bound(segments.begin(), segments.end(), op,
                         [](int wanted, const SegmentSpec& segment) { return wanted < segment.ops.begin; });
    return static_cast<int>(behind - segments.begin()) - 1;
}

std::pair<int, int> Split::segments_of(int stage) const {
    const OpRange ops = stages[static_cast<size_t>(stage)].ops;
    return {segment_of_op(ops.begin), segment_of_op(ops.end - 1) + 1};
}

Split make_stages(const Graph& graph, const std::vector<int>& cuts, const std::vector<OpRange>& recomputed) {
    return StageMaker(graph, cuts, recomputed).make();
}

void sum_ties_per_step(Split& split) {
    for (Edge& edge : split.edges) edge.has_gradient = edge.has_gradient && !edge.is_tied();
}

std::vector<ScheduleEdge> schedule_edges(const Split& split) {
    std::vector<ScheduleEdge> edges;
    for (const Edge& edge : split.edges) {
        const bool inside = edge.producer == edge.consumer || edge.gradient_to == edge.consumer;
        if (inside || (edge.is_tied() && !edge.has_gradient)) continue;
        edges.push_back({edge.id, edge.producer, edge.consumer, edge.has_gradient, edge.gradient_to, edge.is_tied()});
    }
    return edges;
}

}  // namespace vpp
