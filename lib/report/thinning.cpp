#include "report/thinning.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

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

struct FiniteSum {
    double sum = 0;
    size_t count = 0;

    void add(double value) {
        if (std::isfinite(value)) add({value, 1});
    }
    void add(const FiniteSum& other) {
        sum += other.sum;
        count += other.count;
    }
};

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
    // A window is the end of one block of its length and the beginning of the next, so no sum ever has a point that is
    // taken off again: a huge one would leave nothing of the others.
    std::vector<FiniteSum> to_end(curve.size());
    for (size_t i = curve.size(); i-- > 0;) {
        if (i + 1 < curve.size() && (i + 1) % window != 0) to_end[i] = to_end[i + 1];
        to_end[i].add(curve.y[i]);
    }
    Curve means;
    FiniteSum from_begin;
    for (size_t i = 0; i < curve.size(); ++i) {
        if (i % window == 0) from_begin = {};
        from_begin.add(curve.y[i]);
        FiniteSum all = from_begin;
        if (i >= window && (i + 1) % window != 0) all.add(to_end[i + 1 - window]);
        means.add(curve.x[i], all.count > 0 ? all.sum / static_cast<double>(all.count) : curve.y[i]);
    }
    return means;
}

size_t smoothing_window(size_t num_points) {
    return num_points < kSmoothedFrom ? 1 : num_points / kSmoothedShare;
}

}  // namespace vpp
