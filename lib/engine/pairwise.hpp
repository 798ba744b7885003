#pragma once
// Few rows of a large table that still have every pair of values: most of what breaks in combination breaks with two.
// (Pairwise testing, as in Cohen et al., The AETG system, IEEE TSE 1997, over an explicit list.)
#include <cstddef>
#include <functional>
#include <vector>

namespace vpp {

struct PairwiseCover {
    std::vector<size_t> rows;     ///< those that were taken
    std::vector<size_t> refused;  ///< those that were wanted but are not usable
    size_t num_pairs = 0;         ///< pairs that the taken rows have
    size_t num_impossible = 0;    ///< pairs that only refused rows have
};

/// Takes the row that has most pairs which no row before it has, the first of several, until no usable row has a new
/// one. A pair is two values of two axes. A pure function of both.
/// Requires: every row has a value for each axis, counted from 0; `usable` is asked at most once a row.
PairwiseCover cover_pairs(const std::vector<std::vector<int>>& rows, const std::function<bool(size_t)>& usable);

}  // namespace vpp
