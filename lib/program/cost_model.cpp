#include "program/cost_model.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

#include "graph/recompute.hpp"
#include "program/cost_file.hpp"

namespace vpp {

OpCosts& operator+=(OpCosts& sum, const OpCosts& one) {
    sum.forward += one.forward;
    sum.backward += one.backward;
    sum.input_gradient += one.input_gradient;
    sum.weight_gradient += one.weight_gradient;
    return sum;
}

namespace {

constexpr double kTicksOfAMeanRank = 10'000;
constexpr double kMostTicks = 1e9;      // of one op or hop, when a unit has more than one
constexpr double kLongestTicks = 1e12;  // any action or transfer; a whole step stays within whole numbers
constexpr size_t kMostCountedInputs = 2;

/// For every tensor whether its gradient is that of weights alone.
class WeightSide {
  public:
    explicit WeightSide(const Graph& graph) : graph_(graph), is_weight_(graph.tensors.size(), false) {
        for (size_t i = 0; i < graph.tensors.size(); ++i) is_weight_[i] = graph.tensors[i].parameter >= 0;
        for (int op = 0; op < graph.num_ops(); ++op) {
            if (weights_of(op).empty() || takes_others(op_at(op))) continue;
            for (int value : op_at(op).outputs) {
                for (int tensor : tensors_of(value)) is_weight_[static_cast<size_t>(tensor)] = true;
            }
        }
    }

    /// The inputs of an op that get a gradient.
    std::set<int> weights_of(int op) const { return inputs_of(op, true); }
    std::set<int> others_of(int op) const { return inputs_of(op, false); }

  private:
    const GraphOp& op_at(int op) const { return graph_.ops[static_cast<size_t>(op)]; }
    const std::vector<int>& tensors_of(int value) const { return graph_.values[static_cast<size_t>(value)].tensors; }

    std::set<int> inputs_of(int op, bool weights) const {
        std::set<int> found;
        for (int value : op_at(op).inputs) {
            for (int tensor : tensors_of(value)) {
                const auto index = static_cast<size_t>(tensor);
                if (graph_.tensors[index].requires_grad_at(op) && is_weight_[index] == weights) found.insert(tensor);
            }
        }
        return found;
    }

    /// Whether it takes anything but weights, data among it.
    bool takes_others(const GraphOp& op) const {
        for (int value : op.inputs) {
            for (int tensor : tensors_of(value)) {
                if (!is_weight_[static_cast<size_t>(tensor)]) return true;
            }
        }
        return false;
    }

    const Graph& graph_;
    std::vector<bool> is_weight_;
};

/// A power of ten; smaller where one op or hop is very long beside the others.
double ticks_per_unit(const CostModel& model, int num_ranks) {
    double forward = 0;
    double longest = model.transfer;
    for (const OpCosts& op : model.ops) {
        forward += op.forward;
        longest = std::max({longest, op.forward, op.backward, op.input_gradient, op.weight_gradient});
    }
    double ticks = 1;
    while (forward / num_ranks * ticks < kTicksOfAMeanRank && longest * ticks < kMostTicks) ticks *= 10;
    return ticks;
}

Ticks whole(double time, double ticks_per_unit) {
    return static_cast<Ticks>(std::llround(std::min(time * ticks_per_unit, kLongestTicks)));
}

/// The ticks from one sum to a later one. Sums are rounded, not stages: so all splits have the same total. Where B is I
/// and W, it is so in ticks too.
StageCosts between(const OpCosts& begin, const OpCosts& end, double ticks_per_unit) {
    const auto ticks = [&](double from, double to) { return whole(to, ticks_per_unit) - whole(from, ticks_per_unit); };
    StageCosts costs{ticks(begin.forward, end.forward), ticks(begin.backward, end.backward),
                     ticks(begin.input_gradient, end.input_gradient),
                     ticks(begin.weight_gradient, end.weight_gradient)};
    const Ticks halves = costs.input_gradient + costs.weight_gradient;
    if (std::abs(costs.backward - halves) <= 1) costs.backward = halves;
    return costs;
}

ScheduleCosts without_transfers(const CostModel& model, const std::vector<int>& cuts, int num_ranks) {
    ScheduleCosts costs;
    costs.ticks_per_unit = ticks_per_unit(model, num_ranks);
    OpCosts begin, end;
    size_t op = 0;
    for (size_t stage = 0; stage <= cuts.size(); ++stage) {
        const size_t behind = stage < cuts.size() ? static_cast<size_t>(cuts[stage]) : model.ops.size();
        for (; op < behind; ++op) end += model.ops[op];
        costs.stages.push_back(between(begin, end, costs.ticks_per_unit));
        begin = end;
    }
    return costs;
}

Ticks transfer(const CostModel& model, int64_t bytes, double ticks_per_unit) {
    return whole(model.transfer + model.transfer_of_a_byte * static_cast<double>(bytes), ticks_per_unit);
}

}  // namespace

CostModel estimate_costs(const Graph& graph, int num_ranks) {
    double total = 0;
    for (const GraphOp& op : graph.ops) total += op.flops;
    const bool counts_ops = total <= 0;
    if (counts_ops) total = std::max(1, graph.num_ops());
    const double of_a_flop = num_ranks / total;
    const WeightSide sides(graph);
    CostModel model;
    for (int op = 0; op < graph.num_ops(); ++op) {
        const double forward = (counts_ops ? 1 : graph.ops[static_cast<size_t>(op)].flops) * of_a_flop;
        const auto inputs = static_cast<double>(std::min(sides.others_of(op).size(), kMostCountedInputs));
        const double weights = sides.weights_of(op).empty() ? 0 : 1;
        model.ops.push_back({forward, forward * (inputs + weights), forward * inputs, forward * weights});
    }
    model.transfer_of_a_byte = counts_ops ? 0 : kFlopsOfABytesTransfer * of_a_flop;
    model.unit = "x F of a mean rank";
    model.source = "FLOPs; a byte sent counts 10";
    return model;
}

/// F once more, before I or B can begin.
void add_recompute(CostModel& costs, OpRange range) {
    for (int op = range.begin; op < range.end; ++op) {
        OpCosts& entry = costs.ops[static_cast<size_t>(op)];
        entry.backward += entry.forward;
        entry.input_gradient += entry.forward;
    }
}

CostModel find_costs(const Plan& plan, const Graph& graph) {
    CostModel costs = estimate_costs(graph, *plan.mesh.pp);
    const std::string file = cost_file_of(plan);
    if (!file.empty()) costs = measured_costs(read_cost_file(file), graph, costs, plan);
    for (const OpRange& range : find_recomputed(graph, plan, {})) add_recompute(costs, range);
    return costs;
}

SplitTimes split_times(const CostModel& model, const Plan& plan, int stages_per_rank, const Schedule* compute) {
    SplitTimes times;
    for (const OpCosts& op : model.ops) times.ops.push_back(op.forward + op.backward);
    times.transfer = model.transfer;
    times.transfer_of_a_byte = model.transfer_of_a_byte;
    if (plan.pipeline.memory_limit) times.most_activation_bytes = plan.pipeline.memory_limit->bytes;
    times.in_flight.assign(static_cast<size_t>(*plan.mesh.pp * stages_per_rank), stages_per_rank);
    if (!compute || compute->num_stages() != static_cast<int>(times.in_flight.size())) return times;
    const std::vector<int> held = peak_in_flight(*compute);
    for (size_t stage = 0; stage < times.in_flight.size(); ++stage) {
        times.in_flight[stage] = held[static_cast<size_t>(compute->rank_of_stage[stage])];
    }
    return times;
}

ScheduleCosts costs_of_stages(const CostModel& model, const Graph& graph, const std::vector<int>& cuts, int num_ranks) {
    ScheduleCosts costs = without_transfers(model, cuts, num_ranks);
    const std::vector<int64_t> bytes = all_cut_bytes(graph);
    for (size_t i = 0; i < cuts.size(); ++i) {
        costs.transfer_of[static_cast<int>(i)] =
            transfer(model, bytes[static_cast<size_t>(cuts[i])], costs.ticks_per_unit);
    }
    return costs;
}

ScheduleCosts costs_of_split(const CostModel& model, const Split& split, int num_ranks) {
    ScheduleCosts costs = without_transfers(model, split.cuts, num_ranks);
    std::map<std::pair<int, int>, int64_t> bytes;
    for (const Edge& edge : split.edges) {
        if (!edge.is_tied()) bytes[{edge.producer, edge.consumer}] += edge.bytes;
    }
    for (const Edge& edge : split.edges) {
        const int64_t carried = edge.is_tied() ? edge.bytes : bytes[{edge.producer, edge.consumer}];
        costs.transfer_of[edge.id] = transfer(model, carried, costs.ticks_per_unit);
    }
    return costs;
}

}  // namespace vpp
