#pragma once
// Pictures of digits that vpp draws itself: 8x8, a glyph of 3x5 dots at one of four places, with noise.
#include <cstdint>
#include <vector>

namespace vpp {

struct DigitImages {
    static constexpr int64_t kSide = 8;
    std::vector<float> pixels;  ///< [count, kSide, kSide]; paper about -0.5, ink about 2: mean near 0, deviation near 1
    std::vector<int64_t> labels;  ///< [count], 0..9

    int64_t count() const { return static_cast<int64_t>(labels.size()); }
    /// Rows [begin, end) of every picture: [count, end - begin, kSide].
    std::vector<float> rows(int64_t begin, int64_t end) const;
};

/// Other seeds give other digits, places and noise.
DigitImages draw_digits(int64_t count, uint64_t seed);

}  // namespace vpp
