#pragma once
// Long curves with fewer points that look the same: every extreme stays.
#include <cstddef>
#include <string>
#include <vector>

namespace vpp {

/// Numbers over steps.
struct Curve {
    std::vector<double> x;  ///< ascending
    std::vector<double> y;  ///< as many; what is not finite leaves a gap
    size_t size() const { return x.size(); }
    void add(double at, double value) {
        x.push_back(at);
        y.push_back(value);
    }
};

/// The curve itself when it has at most 2 x `buckets` + 2 points. Else its points are taken in `buckets` groups of
/// neighbours, and of each the smallest and the largest finite one stay, in their order, and one that is not finite
/// where there is any; and the first and the last point. No value is made up.
/// Requires: buckets >= 1.
Curve thinned(const Curve& curve, size_t buckets);

/// Each value replaced by the mean of the finite ones among the last `window`, itself included; where there is none it
/// stays. Requires: window >= 1.
Curve moving_mean(const Curve& curve, size_t window);

/// The points of a mean that shows where a noisy curve goes: a fiftieth of them; 1 for a short curve, which is shown as
/// it is.
size_t smoothing_window(size_t num_points);

}  // namespace vpp
