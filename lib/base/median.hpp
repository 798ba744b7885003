#pragma once
// The middle of measured values, which single ones that are far off do not move.
#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

namespace vpp {

/// The value in the middle by what `order` gives of it; the lower one of two.
/// Requires: at least one value.
template <class Values, class Order = std::identity>
auto median(const Values& measured, Order order = {}) {
    std::vector values(measured.begin(), measured.end());
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
    std::ranges::nth_element(values, middle, {}, order);
    return *middle;
}

}  // namespace vpp
