#include "engine/ignored_targets.hpp"

#include <algorithm>
#include <vector>

namespace vpp {

namespace {

bool ignores_all(const Dataset& data, int field, int64_t ignore_index, const Draw& sample) {
    std::vector<int64_t> targets(
        static_cast<size_t>(num_elements(data.fields().fields[static_cast<size_t>(field)].shape)));
    data.read_draw(sample, field, std::as_writable_bytes(std::span(targets)));
    return std::ranges::all_of(targets, [&](int64_t target) { return target == ignore_index; });
}

}  // namespace

std::string all_targets_ignored(const Plan& plan, const Dataset& data, std::span<const Draw> samples) {
    if (!plan.loss || !plan.loss->is_over_classes() || plan.model.loss_reduction != "mean") return "";
    const int field = data.fields().find(plan.loss->target);
    if (field < 0 || data.fields().fields[static_cast<size_t>(field)].dtype != DType::I64) return "";
    const int64_t ignored = plan.loss->ignore_index;
    const auto is_ignored = [&](const Draw& sample) { return ignores_all(data, field, ignored, sample); };
    if (!std::ranges::all_of(samples, is_ignored)) return "";
    return "all targets there are loss.ignore_index (" + std::to_string(ignored) + "), and a mean of none is NaN";
}

}  // namespace vpp
