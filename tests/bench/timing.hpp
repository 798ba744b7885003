#pragma once
// What benches in C++ share.
#include <algorithm>
#include <chrono>
#include <vector>

namespace vpp::bench {

/// Of what went to and fro since `start`.
inline double microseconds_one_way(std::chrono::steady_clock::time_point start, int repeats) {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() /
           (2.0 * repeats);
}

/// Requires: some values.
inline double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

}  // namespace vpp::bench
