#include "graph/recompute.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "graph/split.hpp"

namespace vpp {

namespace {

/// Runs of units as ranges: `every` units each, a new range in every stage.
class RangeMaker {
  public:
    RangeMaker(const Graph& graph, const Units& units, int64_t every) : graph_(graph), units_(units), every_(every) {}

    void add_stage(OpRange stage) {
        int first = -1;
        for (int op = stage.begin; op < stage.end; ++op) {
            const int unit = units_.unit_of[static_cast<size_t>(op)];
            if (unit < 0) continue;
            if (first < 0 || unit - first >= every_) {
                ranges_.push_back({op, op + 1});
                first = unit;
            }
            ranges_.back().end = op + 1;
        }
        widen(stage);
    }

    std::vector<OpRange> take() { return std::move(ranges_); }

  private:
    bool is_border(int op) const { return graph_.cuts[static_cast<size_t>(op)].legal; }

    /// Moves the borders of a stage's ranges out to legal ones; ranges that meet become one.
    void widen(OpRange stage) {
        const auto own = std::find_if(ranges_.begin(), ranges_.end(),
                                      [&](const OpRange& range) { return range.begin >= stage.begin; });
        std::vector<OpRange> widened;
        for (auto range = own; range != ranges_.end(); ++range) {
            while (range->begin > stage.begin && !is_border(range->begin)) --range->begin;
            while (range->end < stage.end && !is_border(range->end)) ++range->end;
            if (!widened.empty() && range->begin < widened.back().end)
                widened.back().end = std::max(widened.back().end, range->end);
            else
                widened.push_back(*range);
        }
        ranges_.erase(own, ranges_.end());
        ranges_.insert(ranges_.end(), widened.begin(), widened.end());
    }

    const Graph& graph_;
    const Units& units_;
    int64_t every_;
    std::vector<OpRange> ranges_;
};

std::vector<OpRange> stages_of(const Graph& graph, const std::vector<int>& cuts) {
    std::vector<OpRange> stages;
    int begin = 0;
    for (int cut : cuts) stages.push_back({std::exchange(begin, cut), cut});
    stages.push_back({begin, graph.num_ops()});
    return stages;
}

Units units_of(const Graph& graph, const Plan& plan) {
    if (plan.pipeline.recompute.what == "modules") {
        check_units(graph, plan, "pipeline.recompute.modules", plan.pipeline.recompute.modules);
        return find_units(graph, plan.pipeline.recompute.modules);
    }
    Units units = find_units(graph, plan.pipeline.smallest_unsplittable_units);
    if (!units.names.empty()) return units;
    throw Error(ErrorKind::Plan,
                "pipeline.recompute.what = \"units\", but the model has no units; name some in "
                "pipeline.smallest_unsplittable_units, or try what = \"stage\"",
                plan.where("pipeline.recompute.what"));
}

}  // namespace

std::vector<OpRange> find_recomputed(const Graph& graph, const Plan& plan, const std::vector<int>& cuts) {
    const RecomputePlan& recompute = plan.pipeline.recompute;
    if (recompute.what == "none") return {};
    const std::vector<OpRange> stages = stages_of(graph, cuts);
    if (recompute.what == "stage") return stages;
    const Units units = units_of(graph, plan);
    RangeMaker maker(graph, units, recompute.what == "units" ? recompute.every : 1);
    for (const OpRange& stage : stages) maker.add_stage(stage);
    return maker.take();
}

}  // namespace vpp
