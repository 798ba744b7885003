#include "report/thinning.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace vpp {

namespace {

constexpr size_t kSmoothedFrom = 100;  // points
constexpr size_t kSmoothedShare = 50;

/// The points of a group that stay, ascending.
std::set<size_t> kept_of(const Curve& curve, size_t begin, size_t end) {
    std::set<size_t> kept;
    size_t least = end, most = end;
    for (size_t i = begin; i < end; ++i) {
        if (!std::isfinite(curve.y[i])) {
            kept = {i};
            continue;
        }
        if (least == end || curve.y[i] < curve.y[least]) least = i;
        if (most == end || curve.y[i] > curve.y[most]) most = i;
    }
    for (const size_t i : {least, most}) {
        if (i != end) kept.insert(i);
    }
    return kept;
}

}  // namespace

Curve thinned(const Curve& curve, size_t buckets) {
    if (curve.size() <= 2 * buckets + 2) return curve;
    Curve thin;
    const auto add = [&](size_t i) { thin.add(curve.x[i], curve.y[i]); };
    const size_t inner = curve.size() - 2;
    add(0);
    for (size_t bucket = 0; bucket < buckets; ++bucket) {
        for (const size_t i : kept_of(curve, 1 + bucket * inner / buckets, 1 + (bucket + 1) * inner / buckets)) add(i);
    }
    add(curve.size() - 1);
    return thin;
}

Curve moving_mean(const Curve& curve, size_t window) {
    Curve means;
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < curve.size(); ++i) {
        if (std::isfinite(curve.y[i])) {
            sum += curve.y[i];
            ++count;
        }
        if (i >= window && std::isfinite(curve.y[i - window])) {
            sum -= curve.y[i - window];
            --count;
        }
        means.add(curve.x[i], count > 0 ? sum / static_cast<double>(count) : curve.y[i]);
    }
    return means;
}

size_t smoothing_window(size_t num_points) {
    return num_points < kSmoothedFrom ? 1 : num_points / kSmoothedShare;
}

}  // namespace vpp
