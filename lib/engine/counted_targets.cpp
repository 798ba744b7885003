#include "engine/counted_targets.hpp"

#include <algorithm>
#include <vector>

#include "base/error.hpp"

namespace vpp {

namespace {

template <typename T>
int64_t count_in(const Dataset& data, int field, int64_t ignore_index, std::span<const Draw> samples) {
    std::vector<T> targets(static_cast<size_t>(num_elements(data.fields().fields[static_cast<size_t>(field)].shape)));
    int64_t count = 0;
    for (const Draw& sample : samples) {
        data.read_draw(sample, field, std::as_writable_bytes(std::span(targets)));
        count += std::ranges::count_if(targets, [&](T target) { return int64_t{target} != ignore_index; });
    }
    return count;
}

}  // namespace

int64_t count_targets(const Plan& plan, const Dataset& data, std::span<const Draw> samples) {
    const int field = data.fields().find(plan.loss->target);
    check(field >= 0, "the targets are a field of the data");
    const DType dtype = data.fields().fields[static_cast<size_t>(field)].dtype;
    check(dtype == DType::I64 || dtype == DType::U8, "classes are int64 or uint8");
    const auto count = dtype == DType::I64 ? count_in<int64_t> : count_in<uint8_t>;
    return count(data, field, plan.loss->ignore_index, samples);
}

std::string all_targets_ignored(const Plan& plan, const Dataset& data, std::span<const Draw> samples) {
    if (!plan.loss || !plan.loss->is_over_classes() || plan.model.loss_reduction != "mean") return "";
    const int field = data.fields().find(plan.loss->target);
    if (field < 0 || is_floating(data.fields().fields[static_cast<size_t>(field)].dtype)) return "";
    if (count_targets(plan, data, samples) > 0) return "";
    return "all targets there are loss.ignore_index (" + std::to_string(plan.loss->ignore_index) +
           "), and a mean of none is NaN";
}

}  // namespace vpp
