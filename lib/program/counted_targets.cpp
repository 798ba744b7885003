#include "program/counted_targets.hpp"

#include <algorithm>
#include <vector>

#include "base/error.hpp"
#include "data/number_types.hpp"
#include "graph/input_behind.hpp"

namespace vpp {

namespace {

template <typename T>
int64_t count_in(const Dataset& data, int field, int64_t ignore_index, std::span<const Draw> samples) {
    std::vector<T> targets(static_cast<size_t>(num_elements(data.fields().fields[static_cast<size_t>(field)].shape)));
    int64_t count = 0;
    for (const Draw& sample : samples) {
        data.read_draw(sample, field, std::as_writable_bytes(std::span(targets)));
        count += std::ranges::count_if(targets, [&](T target) { return static_cast<int64_t>(target) != ignore_index; });
    }
    return count;
}

}  // namespace

std::optional<CountedTargets> find_counted_targets(const Graph& graph) {
    const int producer = graph.values[static_cast<size_t>(graph.loss)].producer;
    if (producer < 0) return std::nullopt;
    const GraphOp& loss = graph.ops[static_cast<size_t>(producer)];
    const int input = loss.counts_classes() ? input_behind(graph, loss.inputs[1]) : -1;
    if (input < 0) return std::nullopt;
    return CountedTargets{graph.inputs[static_cast<size_t>(input)].name, loss.ignored_targets[0]};
}

CountedTargets counted_targets(const Plan& plan, const Graph& graph) {
    if (const std::optional<CountedTargets> found = find_counted_targets(graph)) return *found;
    throw Error(ErrorKind::Plan,
                "model.loss_reduction = \"target_mean\" counts targets that are a data field of integers as it is, and "
                "the loss has other ones; let forward return its scores and add a [loss], or take \"mean\"",
                plan.where("model.loss_reduction"));
}

int64_t count_targets(const CountedTargets& counted, const Dataset& data, std::span<const Draw> samples) {
    const int field = data.fields().find(counted.field);
    check(field >= 0, "the targets are a field of the data");
    int64_t count = 0;
    const bool is_number = detail::with_number_type(
        data.fields().fields[static_cast<size_t>(field)].dtype,
        [&](auto number) { count = count_in<decltype(number)>(data, field, counted.ignore_index, samples); });
    check(is_number, "classes are integers");
    return count;
}

std::string all_targets_ignored(const Graph& graph, const Dataset& data, std::span<const Draw> samples) {
    const std::optional<CountedTargets> counted = find_counted_targets(graph);
    if (!counted || count_targets(*counted, data, samples) > 0) return "";
    return "all targets there are " + counted->ignored_text() + ", and a mean of none is NaN";
}

}  // namespace vpp
