#include "stage/segment_io.hpp"

#include <algorithm>
#include <set>

#include "base/error.hpp"

namespace vpp {

namespace {

class IoFinder {
  public:
    IoFinder(const Graph& graph, const Split& split, int segment)
        : graph_(graph), split_(split), segment_(segment), ops_(split.segments[static_cast<size_t>(segment)].ops) {}

    SegmentIo find() {
        find_inputs();
        find_edges();
        find_values_used_later();
        io_.makes_loss = made_here(graph_.values[static_cast<size_t>(graph_.loss)].producer);
        if (io_.makes_loss) live_outs_.insert(graph_.loss);
        const bool has_outputs = !graph_.outputs.empty() || !graph_.tallies.empty();
        if (has_outputs && ops_.end == graph_.num_ops()) io_.gathered = graph_.ops.back().outputs[0];
        io_.live_outs.assign(live_outs_.begin(), live_outs_.end());
        return std::move(io_);
    }

  private:
    bool made_here(int producer) const { return producer >= ops_.begin && producer < ops_.end; }

    void find_inputs() {
        std::set<int> live_ins, parameters;
        for (int op = ops_.begin; op < ops_.end; ++op) {
            for (int value : graph_.ops[static_cast<size_t>(op)].inputs) {
                const GraphValue& entry = graph_.values[static_cast<size_t>(value)];
                if (made_here(entry.producer)) continue;
                bool is_parameter = false;
                for (int tensor : entry.tensors) {
                    const int parameter = graph_.tensors[static_cast<size_t>(tensor)].parameter;
                    if (parameter < 0) continue;
                    parameters.insert(parameter);
                    is_parameter = entry.producer < 0;
                }
                if (!is_parameter) live_ins.insert(value);
            }
        }
        io_.live_ins.assign(live_ins.begin(), live_ins.end());
        io_.parameters.assign(parameters.begin(), parameters.end());
    }

    void find_edges() {
        std::set<int> received, arrives;
        for (const Edge& edge : split_.edges) {
            if (edge.is_tied() && !edge.has_gradient) continue;
            if (edge.is_tied()) {
                if (edge.segments.consumer == segment_) io_.tied_copies.push_back(edge.parameter);
                if (edge.segments.gradient_to == segment_) io_.tied_arrives.push_back(edge.parameter);
                continue;
            }
            if (edge.segments.producer == segment_) add_export(edge);
            if (edge.is_bundle()) continue;
            if (edge.segments.consumer == segment_) received.insert(edge.tensor);
            if (edge.has_gradient && edge.segments.gradient_to == segment_) {
                arrives.insert(edge.tensor);
                need_tensor(edge.tensor);
            }
        }
        io_.received.assign(received.begin(), received.end());
        io_.gradient_arrives.assign(arrives.begin(), arrives.end());
    }

    void add_export(const Edge& edge) {
        io_.exports.push_back(edge.id);
        for (int value : edge.values) {
            if (made_here(graph_.values[static_cast<size_t>(value)].producer)) live_outs_.insert(value);
        }
        if (edge.tensor >= 0) need_tensor(edge.tensor);
    }

    /// A tensor made here leaves through the first value that holds it; a received one is at hand already.
    void need_tensor(int tensor) {
        if (!made_here(graph_.tensors[static_cast<size_t>(tensor)].producer)) return;
        for (size_t value = 0; value < graph_.values.size(); ++value) {
            const GraphValue& entry = graph_.values[value];
            const bool holds = std::find(entry.tensors.begin(), entry.tensors.end(), tensor) != entry.tensors.end();
            if (!holds || !made_here(entry.producer)) continue;
            live_outs_.insert(static_cast<int>(value));
            return;
        }
        check(false, "a tensor made by a segment is held by one of its values");
    }

    /// Later segments take what a value held when the model was prepared, so every value is looked at that they use.
    void find_values_used_later() {
        for (size_t value = 0; value < graph_.values.size(); ++value) {
            const GraphValue& entry = graph_.values[value];
            const bool is_used_later = !entry.uses.empty() && entry.uses.back() >= ops_.end;
            if (made_here(entry.producer) && is_used_later && !entry.tensors.empty()) {
                live_outs_.insert(static_cast<int>(value));
            }
        }
    }

    const Graph& graph_;
    const Split& split_;
    int segment_;
    OpRange ops_;
    SegmentIo io_;
    std::set<int> live_outs_;
};

}  // namespace

SegmentIo find_segment_io(const Graph& graph, const Split& split, int segment) {
    return IoFinder(graph, split, segment).find();
}

}  // namespace vpp
