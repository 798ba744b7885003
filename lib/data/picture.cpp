#include "data/picture.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.hpp"

namespace vpp::detail {

namespace {

/// The two values that a new value lies between along one dim, and the weight of the second.
struct Between {
    int64_t first = 0, second = 0;
    double weight = 0;
};

std::vector<Between> places_between(int64_t from, int64_t to) {
    const double step = static_cast<double>(from) / static_cast<double>(to);
    std::vector<Between> places;
    for (int64_t i = 0; i < to; ++i) {
        const double at = std::max(step * (static_cast<double>(i) + 0.5) - 0.5, 0.0);
        const auto first = std::min(static_cast<int64_t>(at), from - 1);
        places.push_back({first, std::min(first + 1, from - 1), std::min(at - static_cast<double>(first), 1.0)});
    }
    return places;
}

double mixed(double first, double second, double weight) {
    return first * (1 - weight) + second * weight;
}

/// Values that lie in a row, from back to front.
void mirror_row(std::byte* row, int64_t width, size_t value_bytes) {
    for (int64_t left = 0, right = width - 1; left < right; ++left, --right) {
        std::byte* first = row + static_cast<size_t>(left) * value_bytes;
        std::swap_ranges(first, first + value_bytes, row + static_cast<size_t>(right) * value_bytes);
    }
}

}  // namespace

void copy_window(std::span<const std::byte> planes, PlaneSize from, const Window& window, PlaneSize to,
                 size_t value_bytes, std::span<std::byte> out) {
    const size_t from_bytes = static_cast<size_t>(from.num_values()) * value_bytes;
    const size_t to_bytes = static_cast<size_t>(to.num_values()) * value_bytes;
    const size_t num_planes = planes.size() / from_bytes;
    check(planes.size() == num_planes * from_bytes && out.size() == num_planes * to_bytes, "planes are whole");
    std::ranges::fill(out, std::byte{0});
    const int64_t begin = std::max<int64_t>(window.left, 0), end = std::min(window.left + to.width, from.width);
    for (size_t plane = 0; plane < num_planes; ++plane) {
        for (int64_t row = 0; row < to.height; ++row) {
            const int64_t source_row = window.top + row;
            std::byte* target = out.data() + plane * to_bytes + static_cast<size_t>(row * to.width) * value_bytes;
            if (source_row < 0 || source_row >= from.height || begin >= end) continue;
            const std::byte* source =
                planes.data() + plane * from_bytes + static_cast<size_t>(source_row * from.width + begin) * value_bytes;
            std::memcpy(target + static_cast<size_t>(begin - window.left) * value_bytes, source,
                        static_cast<size_t>(end - begin) * value_bytes);
            if (window.mirrored) mirror_row(target, to.width, value_bytes);
        }
    }
}

void resize_planes(std::span<const float> planes, PlaneSize from, PlaneSize to, std::span<float> out) {
    const auto from_values = static_cast<size_t>(from.num_values()), to_values = static_cast<size_t>(to.num_values());
    const size_t num_planes = planes.size() / from_values;
    check(planes.size() == num_planes * from_values && out.size() == num_planes * to_values, "planes are whole");
    const std::vector<Between> rows = places_between(from.height, to.height);
    const std::vector<Between> columns = places_between(from.width, to.width);
    for (size_t plane = 0; plane < num_planes; ++plane) {
        const float* source = planes.data() + plane * from_values;
        float* target = out.data() + plane * to_values;
        for (const Between& row : rows) {
            const float* upper = source + row.first * from.width;
            const float* lower = source + row.second * from.width;
            for (const Between& column : columns) {
                const double above = mixed(upper[column.first], upper[column.second], column.weight);
                const double below = mixed(lower[column.first], lower[column.second], column.weight);
                *target++ = static_cast<float>(mixed(above, below, row.weight));
            }
        }
    }
}

}  // namespace vpp::detail
