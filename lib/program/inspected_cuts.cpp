#include "program/inspected_cuts.hpp"

#include <algorithm>
#include <cstdlib>

#include "graph/split.hpp"

namespace vpp {

namespace {

constexpr double kAsEven = 1.05;

class CutInspector {
  public:
    CutInspector(const Graph& graph, const Split& split, const Plan& plan, const ScheduleCosts& costs)
        : graph_(graph), split_(split), costs_(costs), bytes_(all_cut_bytes(graph)) {
        const std::vector<std::string>& listed = plan.pipeline.smallest_unsplittable_units;
        if (!listed.empty()) unit_of_ = find_units(graph, listed).unit_of;
        flops_before_.push_back(0);
        for (const GraphOp& op : graph.ops) flops_before_.push_back(flops_before_.back() + op.flops);
        for (const StageSpec& stage : split.stages) heaviest_ = std::max(heaviest_, stage.flops);
    }

    InspectedCut inspect(size_t index) const {
        const OpRange before = split_.stages[index].ops, behind = split_.stages[index + 1].ops;
        InspectedCut cut;
        cut.op = cut.better_op = behind.begin;
        cut.bytes = cut.better_bytes = bytes_at(cut.op);
        const double now = larger(before.begin, cut.op, behind.end);
        const double limit = std::max(kAsEven * now, heaviest_);
        for (int op = before.begin + 1; op < behind.end; ++op) {
            if (!may_cut(op) || larger(before.begin, op, behind.end) > limit) continue;
            const bool is_nearer = std::abs(op - cut.op) < std::abs(cut.better_op - cut.op);
            if (bytes_at(op) > cut.better_bytes || (bytes_at(op) == cut.better_bytes && !is_nearer)) continue;
            cut.better_op = op;
            cut.better_bytes = bytes_at(op);
        }
        cut.better_largest = now > 0 ? larger(before.begin, cut.better_op, behind.end) / now : 1;
        cut.better_after = graph_.ops[static_cast<size_t>(cut.better_op) - 1].module;
        cut.transfer_share = transfer_share(static_cast<int>(index));
        return cut;
    }

  private:
    int64_t bytes_at(int op) const { return bytes_[static_cast<size_t>(op)]; }

    bool may_cut(int op) const {
        const auto index = static_cast<size_t>(op);
        if (!graph_.cuts[index].legal) return false;
        return unit_of_.empty() || unit_of_[index] < 0 || unit_of_[index] != unit_of_[index - 1];
    }

    /// FLOPs of the larger of two neighbours.
    double larger(int begin, int cut, int end) const {
        const auto at = [&](int op) { return flops_before_[static_cast<size_t>(op)]; };
        return std::max(at(cut) - at(begin), at(end) - at(cut));
    }

    /// A message over the boundary against F of a mean stage.
    double transfer_share(int stage) const {
        Ticks longest = 0, forward = 0;
        for (const Edge& edge : split_.edges) {
            const bool crosses = edge.producer <= stage && edge.consumer > stage && !edge.is_tied();
            if (crosses) longest = std::max(longest, costs_.of_transfer(edge.id));
        }
        for (int index = 0; index < split_.num_stages(); ++index) forward += costs_.of_stage(index).forward;
        if (forward <= 0) return 0;
        return static_cast<double>(longest) * split_.num_stages() / static_cast<double>(forward);
    }

    const Graph& graph_;
    const Split& split_;
    const ScheduleCosts& costs_;
    std::vector<int64_t> bytes_;
    std::vector<int> unit_of_;  ///< empty without listed units
    std::vector<double> flops_before_;
    double heaviest_ = 0;
};

}  // namespace

std::vector<InspectedCut> inspect_cuts(const Graph& graph, const Split& split, const Plan& plan,
                                       const ScheduleCosts& costs) {
    const CutInspector inspector(graph, split, plan, costs);
    std::vector<InspectedCut> cuts;
    for (size_t i = 0; i + 1 < split.stages.size(); ++i) cuts.push_back(inspector.inspect(i));
    return cuts;
}

}  // namespace vpp
