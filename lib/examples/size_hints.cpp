#include "examples/size_hints.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <regex>
#include <utility>

namespace vpp {

namespace {

constexpr int64_t kMostSize = 1024;
constexpr size_t kMostLengths = 4;
constexpr int64_t kBeside = 3;  // convolutions without padding take some pixels from a side

using Numbers = std::pair<int64_t, int64_t>;

/// The two numbers of a text like this.
std::optional<Numbers> numbers_in(const std::string& text, const std::regex& like) {
    std::smatch found;
    if (!std::regex_search(text, found, like)) return std::nullopt;
    return Numbers{std::stoll(found[1]), std::stoll(found[2])};
}

/// What was given, and what was wanted.
std::optional<Numbers> sizes_that_differ(const std::string& problem) {
    static const std::regex kTensors("\\(([0-9]{1,9})\\) must match [a-z ]*\\(([0-9]{1,9})\\)");
    return numbers_in(problem, kTensors);
}
std::optional<Numbers> products_that_differ(const std::string& problem) {
    static const std::regex kProduct("\\([0-9]+x([0-9]{1,9}) and ([0-9]{1,9})x[0-9]+\\)");
    return numbers_in(problem, kProduct);
}

bool has_dim(const std::vector<Field>& fields, int64_t size) {
    return std::ranges::any_of(
        fields, [&](const Field& field) { return std::ranges::find(field.shape, size) != field.shape.end(); });
}

/// 0 without an image.
int64_t side_of_image(const std::vector<Field>& fields) {
    for (const Field& field : fields) {
        const std::vector<int64_t>& shape = field.shape;
        if (shape.size() == 3 && shape[1] == shape[2]) return shape[1];
    }
    return 0;
}

}  // namespace

void SizeHints::learn(const std::string& problem, const std::vector<Field>& fields) {
    const auto sizes = sizes_that_differ(problem), product = products_that_differ(problem);
    if (!sizes && !product) return;
    const auto [given, wanted] = sizes ? *sizes : *product;
    if (const int64_t side = side_of_image(fields); side > 0) {
        refused_.push_back({side, given, wanted});
        return;
    }
    if (!sizes) return;
    for (const int64_t size : {wanted, given}) {
        if (size > 1 && size <= kMostSize && !has_dim(fields, size)) ++lengths_[size];
    }
}

LikelySizes SizeHints::sizes() const {
    LikelySizes likely;
    std::vector<std::pair<int64_t, int>> named(lengths_.begin(), lengths_.end());
    std::ranges::stable_sort(named, std::ranges::greater(), &std::pair<int64_t, int>::second);
    if (named.size() > kMostLengths) named.resize(kMostLengths);
    if (!named.empty()) likely.lengths.clear();
    for (const auto& [size, times] : named) likely.lengths.push_back(size);
    if (std::vector<int64_t> found = sides(); !found.empty()) likely.sides = std::move(found);
    return likely;
}

/// What is behind an image grows with its area: the root of it goes along a line through the two sides that came
/// nearest.
std::vector<int64_t> SizeHints::sides() const {
    std::vector<RefusedImage> nearest = refused_;
    const auto distance = [](const RefusedImage& image) { return std::abs(image.given - image.wanted); };
    std::ranges::stable_sort(nearest, {}, distance);
    if (nearest.empty()) return {};
    const RefusedImage& one = nearest.front();
    const auto other = std::ranges::find_if(nearest, [&](const RefusedImage& image) {
        return image.side != one.side && image.given != one.given && image.wanted == one.wanted;
    });
    if (other == nearest.end()) return {};
    const auto root = [](int64_t number) { return std::sqrt(static_cast<double>(number)); };
    const double a_side = static_cast<double>(one.side - other->side) / (root(one.given) - root(other->given));
    const auto middle = one.side + std::llround(a_side * (root(one.wanted) - root(one.given)));
    std::vector<int64_t> found;
    for (int64_t away = 0; away <= kBeside; ++away) {
        for (const int64_t side : {middle + away, middle - away}) {
            const bool is_new = std::ranges::find(found, side) == found.end();
            if (side > 0 && side <= kMostSize && is_new) found.push_back(side);
        }
    }
    return found;
}

}  // namespace vpp
