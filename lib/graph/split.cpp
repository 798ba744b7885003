#include "graph/split.hpp"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>

#include "base/error.hpp"
#include "base/suggest.hpp"
#include "base/units.hpp"
#include "graph/stage_borders.hpp"

namespace vpp {

namespace {

/// What every method sees.
struct SplitTask {
    const Graph& graph;
    const Plan& plan;
    int num_stages;
    Units listed;   ///< units that may not be cut (only those that the plan lists)
    Units counted;  ///< units that UNIFORM counts
    const SplitTimes* times = nullptr;
};

bool inside_unit(const Units& units, int cut) {
    const auto position = static_cast<size_t>(cut);
    const int unit = units.unit_of[position];
    return unit >= 0 && unit == units.unit_of[position - 1];
}

bool may_cut(const SplitTask& task, int cut) {
    return task.graph.cuts[static_cast<size_t>(cut)].legal && !inside_unit(task.listed, cut);
}

std::vector<int> allowed_cuts(const SplitTask& task, int begin, int end) {
    std::vector<int> cuts;
    for (int cut = begin + 1; cut < end; ++cut) {
        if (may_cut(task, cut)) cuts.push_back(cut);
    }
    return cuts;
}

std::string describe_cut(const Graph& graph, int cut) {
    return "after " + numbered_op_text(graph, cut - 1);
}

[[noreturn]] void too_few(const SplitTask& task, size_t available) {
    const auto [reason, times] = task.graph.commonest_refusal();
    const std::string refused =
        times == 0 ? "" : " (" + counted_text(times, "is", "are") + " refused since " + reason + ")";
    const bool lists_units = !task.plan.pipeline.smallest_unsplittable_units.empty();
    throw Error(ErrorKind::Plan,
                "the model can be cut at " + counted_text(static_cast<int64_t>(available), "place") + refused +
                    ", so it cannot be split into " + std::to_string(task.num_stages) +
                    " stages; lower pipeline.num_stages or virtual_chunks" +
                    (lists_units ? ", or list fewer smallest_unsplittable_units" : ""),
                task.plan.where("pipeline.num_stages"));
}

/// For every wanted place the nearest allowed cut inside (begin, end), the later one of two; each leaves enough of them
/// for the places behind it. Empty when there are too few.
std::vector<int> nearest_cuts(const SplitTask& task, const std::vector<int>& wanted, int begin, int end) {
    const std::vector<int> allowed = allowed_cuts(task, begin, end);
    std::vector<int> cuts;
    if (allowed.size() < wanted.size()) return cuts;
    size_t first = 0;
    for (size_t i = 0; i < wanted.size(); ++i) {
        const auto distance = [&](size_t k) { return std::abs(allowed[k] - wanted[i]); };
        size_t best = first;
        for (size_t k = first; k <= allowed.size() - (wanted.size() - i); ++k) {
            if (distance(k) <= distance(best)) best = k;
        }
        cuts.push_back(allowed[best]);
        first = best + 1;
    }
    return cuts;
}

std::vector<int> minimise_maximum(const SplitTask& task, std::vector<double> costs) {
    PartitionProblem problem{std::move(costs), allowed_cuts(task, 0, task.graph.num_ops()), {}};
    const std::vector<int64_t> bytes = all_cut_bytes(task.graph);
    for (int cut : problem.positions) problem.cut_bytes.push_back(bytes[static_cast<size_t>(cut)]);
    std::vector<int> cuts = min_max_partition(problem, task.num_stages);
    if (static_cast<int>(cuts.size()) != task.num_stages - 1) too_few(task, problem.positions.size());
    return cuts;
}

std::vector<int> split_by_flops(const SplitTask& task) {
    std::vector<double> costs;
    for (const GraphOp& op : task.graph.ops) costs.push_back(op.flops);
    return minimise_maximum(task, std::move(costs));
}

std::vector<int> split_by_parameters(const SplitTask& task) {
    std::vector<double> costs(task.graph.ops.size(), 0.0);
    for (const GraphParameter& parameter : task.graph.parameters) {
        if (!parameter.is_buffer && !parameter.uses.empty()) {
            costs[static_cast<size_t>(parameter.uses.front())] += static_cast<double>(num_elements(parameter.shape));
        }
    }
    return minimise_maximum(task, std::move(costs));
}

/// Cuts [begin, end) into `parts` with equal numbers of units, earlier parts one more where it does not divide.
std::vector<int> cut_units_evenly(const SplitTask& task, int begin, int end, int parts) {
    std::vector<int> unit_ends;  // first op behind each unit that ends inside the range
    for (int op = begin; op < end; ++op) {
        const int unit = task.counted.unit_of[static_cast<size_t>(op)];
        if (unit < 0) continue;
        const bool same = !unit_ends.empty() && task.counted.unit_of[static_cast<size_t>(unit_ends.back()) - 1] == unit;
        if (same)
            unit_ends.back() = op + 1;
        else
            unit_ends.push_back(op + 1);
    }
    const int num_units = static_cast<int>(unit_ends.size());
    if (num_units < parts) return {};
    std::vector<int> wanted;
    for (int part = 1, units = 0; part < parts; ++part) {
        units += num_units / parts + (part <= num_units % parts ? 1 : 0);
        wanted.push_back(unit_ends[static_cast<size_t>(units) - 1]);
    }
    return nearest_cuts(task, wanted, begin, end);
}

std::vector<int> cut_ops_evenly(const SplitTask& task, int begin, int end, int parts) {
    std::vector<int> wanted;
    for (int part = 1; part < parts; ++part) wanted.push_back(begin + (end - begin) * part / parts);
    return nearest_cuts(task, wanted, begin, end);
}

std::vector<int> split_uniformly(const SplitTask& task) {
    const auto evenly = task.plan.pipeline.uniform_split_ops ? cut_ops_evenly : cut_units_evenly;
    std::vector<int> cuts = evenly(task, 0, task.graph.num_ops(), task.num_stages);
    if (static_cast<int>(cuts.size()) != task.num_stages - 1) {
        if (task.plan.pipeline.uniform_split_ops) too_few(task, allowed_cuts(task, 0, task.graph.num_ops()).size());
        throw Error(ErrorKind::Plan,
                    "UNIFORM cannot make " + std::to_string(task.num_stages) + " stages of " +
                        std::to_string(task.counted.names.size()) +
                        " units; lower the number of stages, set uniform_split_ops = true, or use FLOPS",
                    task.plan.where("pipeline.split_method"));
    }
    return cuts;
}

/// The first op behind the submodule that a split point names.
int end_of_point(const SplitTask& task, size_t index) {
    const std::string& point = task.plan.pipeline.split_points[index];
    const auto position = task.plan.where("pipeline.split_points[" + std::to_string(index) + "]");
    int end = 0;
    for (int i = 0; i < task.graph.num_ops(); ++i) {
        const std::string& module = task.graph.ops[static_cast<size_t>(i)].module;
        if (lies_in(module, point)) end = i + 1;
    }
    if (end > 0) return end;
    std::vector<std::string> names;
    bool exists = false;
    for (const GraphModule& module : task.graph.modules) {
        exists = exists || module.name == point;
        names.push_back(module.name);
    }
    throw Error(ErrorKind::Plan,
                exists ? "the split point '" + point + "' is a submodule that computes nothing in forward"
                       : "the model has no submodule '" + point + "'" + did_you_mean(point, names),
                position);
}

void check_point(const SplitTask& task, size_t index, int cut, int floor) {
    const std::string& point = task.plan.pipeline.split_points[index];
    const auto position = task.plan.where("pipeline.split_points[" + std::to_string(index) + "]");
    if (cut <= floor || cut >= task.graph.num_ops()) {
        throw Error(ErrorKind::Plan,
                    "the split point '" + point +
                        "' leaves a stage without ops; split points name the last submodule "
                        "of each part, in the order in which forward runs them",
                    position);
    }
    if (may_cut(task, cut)) return;
    const std::vector<int> legal = allowed_cuts(task, 0, task.graph.num_ops());
    const auto after = std::lower_bound(legal.begin(), legal.end(), cut);
    std::string nearest;
    if (after != legal.begin()) nearest = describe_cut(task.graph, *std::prev(after));
    if (after != legal.end()) nearest += (nearest.empty() ? "" : " and ") + describe_cut(task.graph, *after);
    const std::string& reason = task.graph.cuts[static_cast<size_t>(cut)].reason;
    throw Error(ErrorKind::Plan,
                "the model cannot be cut after '" + point +
                    "': " + (reason.empty() ? "it lies inside a unit" : reason) + "; the nearest legal cuts are " +
                    (nearest.empty() ? "none" : nearest),
                position);
}

/// Cuts the part [begin, end) evenly: by units where there are enough, else by FLOPs.
std::vector<int> cut_part(const SplitTask& task, int begin, int end, int pieces) {
    std::vector<int> cuts = cut_units_evenly(task, begin, end, pieces);
    if (static_cast<int>(cuts.size()) == pieces - 1) return cuts;
    PartitionProblem problem;
    for (int op = begin; op < end; ++op) problem.costs.push_back(task.graph.ops[static_cast<size_t>(op)].flops);
    const std::vector<int64_t> bytes = all_cut_bytes(task.graph);
    for (int cut : allowed_cuts(task, begin, end)) {
        problem.positions.push_back(cut - begin);
        problem.cut_bytes.push_back(bytes[static_cast<size_t>(cut)]);
    }
    cuts = min_max_partition(problem, pieces);
    if (static_cast<int>(cuts.size()) != pieces - 1) too_few(task, problem.positions.size());
    for (int& cut : cuts) cut += begin;
    return cuts;
}

std::vector<int> split_manually(const SplitTask& task) {
    const size_t num_points = task.plan.pipeline.split_points.size();
    const int chunks = task.plan.pipeline.virtual_chunks;
    const int parts = task.num_stages / chunks;
    // A list names the ends of all stages or of pp parts; the end of the model may be left out.
    const bool whole =
        num_points + 1 == static_cast<size_t>(task.num_stages) || num_points == static_cast<size_t>(task.num_stages);
    const int num_parts = whole ? task.num_stages : parts;
    std::vector<int> ends;
    for (size_t i = 0; i < num_points && static_cast<int>(i) < num_parts; ++i) {
        const int cut = end_of_point(task, i);
        if (static_cast<int>(i) == num_parts - 1) break;  // ops behind it join the last part
        check_point(task, i, cut, ends.empty() ? 0 : ends.back());
        ends.push_back(cut);
    }
    if (static_cast<int>(ends.size()) != num_parts - 1 || num_points > static_cast<size_t>(num_parts)) {
        throw Error(ErrorKind::Plan,
                    "split_points names " + counted_text(static_cast<int64_t>(num_points), "part") + "; " +
                        (parts == task.num_stages ? "" : std::to_string(parts) + " or ") +
                        std::to_string(task.num_stages) + " are needed (the last may be left out)",
                    task.plan.where("pipeline.split_points"));
    }
    if (whole || chunks == 1) return ends;
    std::vector<int> cuts;
    int begin = 0;
    for (int part = 0; part < num_parts; ++part) {
        const int end = part < num_parts - 1 ? ends[static_cast<size_t>(part)] : task.graph.num_ops();
        const std::vector<int> inner = cut_part(task, begin, end, chunks);
        cuts.insert(cuts.end(), inner.begin(), inner.end());
        if (part < num_parts - 1) cuts.push_back(end);
        begin = end;
    }
    return cuts;
}

/// StageSpec::activation_bytes of any range of ops.
class ActivationBytes {
  public:
    explicit ActivationBytes(const Graph& graph) : graph_(graph), uses_(graph.tensors.size()) {
        for (const GraphOp& op : graph.ops) sums_.push_back(sums_.back() + op.kept_bytes);
        for (const GraphValue& value : graph.values) {
            for (int tensor : value.tensors) {
                std::vector<int>& uses = uses_[static_cast<size_t>(tensor)];
                uses.insert(uses.end(), value.uses.begin(), value.uses.end());
            }
        }
        came_before_.resize(graph.ops.size() + 1);
        for (size_t id = 0; id < uses_.size(); ++id) {
            const GraphTensor& tensor = graph.tensors[id];
            if (tensor.producer < 0 && tensor.input < 0) continue;
            std::sort(uses_[id].begin(), uses_[id].end());
            const int last = uses_[id].empty() ? -1 : uses_[id].back();
            for (int op = tensor.producer + 1; op <= last; ++op) came_before_[static_cast<size_t>(op)].push_back(id);
        }
    }

    int64_t of(int begin, int end) const {
        int64_t bytes = sums_[static_cast<size_t>(end)] - sums_[static_cast<size_t>(begin)];
        for (size_t id : came_before_[static_cast<size_t>(begin)]) {
            const auto use = std::lower_bound(uses_[id].begin(), uses_[id].end(), begin);
            if (use != uses_[id].end() && *use < end) bytes += graph_.tensors[id].bytes();
        }
        return bytes;
    }

  private:
    const Graph& graph_;
    std::vector<std::vector<int>> uses_;  ///< by tensor, ascending
    std::vector<int64_t> sums_{0};
    std::vector<std::vector<size_t>> came_before_;  ///< by op: tensors made before it and used there or behind
};

/// Where stages hold too much: the activations of all microbatches in flight are what schedule and cuts decide.
std::function<bool(int, int, int)> within_memory(const Graph& graph, const SplitTimes& times) {
    if (!times.most_activation_bytes) return {};
    return [activations = ActivationBytes(graph), &times](int stage, int begin, int end) {
        const auto index = static_cast<size_t>(stage);
        const int64_t held = index < times.in_flight.size() ? times.in_flight[index] : 1;
        return activations.of(begin, end) * held <= *times.most_activation_bytes;
    };
}

Balance balance_by_time(const SplitTask& task) {
    const SplitTimes& times = *task.times;
    BalanceProblem problem{times.ops, allowed_cuts(task, 0, task.graph.num_ops()), {}, {}};
    const std::vector<int64_t> bytes = all_cut_bytes(task.graph);
    for (int cut : problem.positions) {
        const auto carried = static_cast<double>(bytes[static_cast<size_t>(cut)]);
        problem.cut_times.push_back(times.transfer + times.transfer_of_a_byte * carried);
    }
    if (static_cast<int>(problem.positions.size()) < task.num_stages - 1) too_few(task, problem.positions.size());
    problem.fits = within_memory(task.graph, times);
    if (std::optional<Balance> balance = balance_stages(problem, task.num_stages)) return *std::move(balance);
    throw Error(ErrorKind::Plan,
                "no cut into " + std::to_string(task.num_stages) +
                    " stages keeps the activations of every stage within pipeline.memory_limit (expected at most " +
                    exact_bytes_text(*times.most_activation_bytes) +
                    " of a stage); try a larger pipeline.num_microbatches, more stages, or a larger limit",
                task.plan.where("pipeline.memory_limit"));
}

std::vector<int> split_by_time(const SplitTask& task) {
    return task.times ? balance_by_time(task).cuts : split_by_flops(task);
}

using Method = std::function<std::vector<int>(const SplitTask&)>;

const std::vector<std::pair<std::string, Method>>& methods() {
    static const std::vector<std::pair<std::string, Method>> kMethods{
        {"MANUAL", split_manually}, {"UNIFORM", split_uniformly},  {"PARAMETERS", split_by_parameters},
        {"FLOPS", split_by_flops},  {kSplitByTime, split_by_time},
    };
    return kMethods;
}

/// The plan's own stages are as many as they are; another layout than the plan's may want another number.
std::vector<int> stages_by_hand(const Graph& graph, const Plan& plan, int num_stages) {
    const size_t tables = plan.pipeline.stages.size();
    if (tables == static_cast<size_t>(num_stages)) return stage_borders(graph, plan);
    throw Error(ErrorKind::Plan,
                "the plan has " + std::to_string(tables) + " [[pipeline.stage]] tables, so it cannot be split into " +
                    std::to_string(num_stages) + " stages",
                plan.where("pipeline.stage"));
}

Units no_units(const Graph& graph) {
    return {{}, std::vector<int>(graph.ops.size(), -1)};
}

SplitTask task_of(const Graph& graph, const Plan& plan, int num_stages, const SplitTimes* times) {
    const auto& listed = plan.pipeline.smallest_unsplittable_units;
    Units counted = find_units(graph, listed);
    Units uncut = listed.empty() ? no_units(graph) : counted;
    return {graph, plan, num_stages, std::move(uncut), std::move(counted), times};
}

}  // namespace

std::vector<std::string> split_methods() {
    std::vector<std::string> names;
    for (const auto& [name, method] : methods()) names.push_back(name);
    return names;
}

int64_t cut_bytes(const Graph& graph, int op) {
    std::vector<bool> live(graph.tensors.size(), false);
    for (size_t i = 0; i < graph.values.size(); ++i) {
        const GraphValue& value = graph.values[i];
        if (value.producer >= op || value.uses.empty() || value.uses.back() < op) continue;
        for (int tensor : value.tensors) live[static_cast<size_t>(tensor)] = true;
    }
    int64_t bytes = 0;
    for (size_t i = 0; i < live.size(); ++i) {
        const GraphTensor& tensor = graph.tensors[i];
        if (live[i] && tensor.input < 0 && tensor.parameter < 0) bytes += tensor.bytes();
    }
    return bytes;
}

std::vector<int64_t> all_cut_bytes(const Graph& graph) {
    using Interval = std::pair<int, int>;  // the first and the last op before which a cut has the tensor live
    std::vector<std::vector<Interval>> live(graph.tensors.size());
    for (const GraphValue& value : graph.values) {
        if (value.uses.empty() || value.uses.back() <= value.producer) continue;
        for (int tensor : value.tensors) {
            live[static_cast<size_t>(tensor)].push_back({std::max(value.producer + 1, 0), value.uses.back()});
        }
    }
    std::vector<int64_t> change(graph.ops.size() + 1, 0);
    for (size_t i = 0; i < live.size(); ++i) {
        const GraphTensor& tensor = graph.tensors[i];
        if (tensor.input >= 0 || tensor.parameter >= 0) continue;
        std::sort(live[i].begin(), live[i].end());
        int behind = 0;  // the first cut that does not count the tensor yet
        for (const auto& [first, last] : live[i]) {
            const int from = std::max(first, behind);
            if (from > last) continue;
            change[static_cast<size_t>(from)] += tensor.bytes();
            change[static_cast<size_t>(last) + 1] -= tensor.bytes();
            behind = last + 1;
        }
    }
    std::vector<int64_t> bytes(graph.ops.size());
    int64_t sum = 0;
    for (size_t op = 0; op < bytes.size(); ++op) bytes[op] = sum += change[op];
    return bytes;
}

std::vector<int> find_split(const Graph& graph, const Plan& plan, int num_stages, const SplitTimes* times) {
    if (num_stages == 1) return {};
    if (plan.pipeline.is_by_hand()) return stages_by_hand(graph, plan, num_stages);
    const SplitTask task = task_of(graph, plan, num_stages, times);
    for (const auto& [name, method] : methods()) {
        if (name == plan.pipeline.split_method) return method(task);
    }
    check(false, "the plan's checker knows every split method");
    return {};
}

Balance find_balance(const Graph& graph, const Plan& plan, int num_stages, const SplitTimes& times) {
    return balance_by_time(task_of(graph, plan, num_stages, &times));
}

bool cuts_by_time(const Plan& plan) {
    return !plan.pipeline.is_by_hand() && plan.pipeline.split_method == kSplitByTime;
}

std::vector<int> candidate_cuts(const Graph& graph, const Plan& plan) {
    return allowed_cuts(task_of(graph, plan, 1, nullptr), 0, graph.num_ops());
}

}  // namespace vpp
