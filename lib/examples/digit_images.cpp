#include "examples/digit_images.hpp"

#include <string_view>

#include "base/random.hpp"
#include "data/synthetic.hpp"

namespace vpp {

namespace {

constexpr int64_t kImageWidth = 3;
constexpr double kPaper = -0.5, kInk = 2, kNoise = 0.3;

/// Rows of three dots, from the top.
constexpr std::string_view kGlyphs[] = {
    "####.##.##.####", ".#.##..#..#.###", "###..#####..###", "###..####..####", "#.##.####..#..#",
    "####..###..####", "####..####.####", "###..#..#..#..#", "####.#####.####", "####.####..####",
};

/// Draws one digit into a picture of paper.
void draw(int64_t digit, uint64_t key, float* picture) {
    const int64_t top = 1 + static_cast<int64_t>(combine_key(key, 1) % 2);
    const int64_t left = 2 + static_cast<int64_t>(combine_key(key, 2) % 2);
    const std::string_view glyph = kGlyphs[digit];
    for (int64_t i = 0; i < DigitImages::kSide * DigitImages::kSide; ++i) {
        const int64_t row = i / DigitImages::kSide - top, column = i % DigitImages::kSide - left;
        const bool inside =
            row >= 0 && row < static_cast<int64_t>(glyph.size()) / kImageWidth && column >= 0 && column < kImageWidth;
        const bool is_ink = inside && glyph[static_cast<size_t>(row * kImageWidth + column)] == '#';
        const double noise = kNoise * synthetic_normal(combine_key(key, static_cast<uint64_t>(3 + i)));
        picture[i] = static_cast<float>((is_ink ? kInk : kPaper) + noise);
    }
}

}  // namespace

std::vector<float> DigitImages::rows(int64_t begin, int64_t end) const {
    std::vector<float> part;
    for (int64_t picture = 0; picture < count(); ++picture) {
        const auto first = pixels.begin() + picture * kSide * kSide;
        part.insert(part.end(), first + begin * kSide, first + end * kSide);
    }
    return part;
}

DigitImages draw_digits(int64_t count, uint64_t seed) {
    DigitImages digits;
    digits.pixels.resize(static_cast<size_t>(count * DigitImages::kSide * DigitImages::kSide));
    for (int64_t picture = 0; picture < count; ++picture) {
        const uint64_t key = combine_key(mix64(seed), static_cast<uint64_t>(picture));
        digits.labels.push_back(static_cast<int64_t>(combine_key(key, 0) % 10));
        draw(digits.labels.back(), key, digits.pixels.data() + picture * DigitImages::kSide * DigitImages::kSide);
    }
    return digits;
}

}  // namespace vpp
