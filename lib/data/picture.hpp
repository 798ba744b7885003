#pragma once
// Planes of values, rows from top to bottom: a window of one, mirrored or not, and a plane of another size. What the
// values mean, and which window is taken, is decided in data/field_transform.
#include <cstddef>
#include <cstdint>
#include <span>

namespace vpp::detail {

struct PlaneSize {
    int64_t height = 0;
    int64_t width = 0;
    int64_t num_values() const { return height * width; }
    bool operator==(const PlaneSize&) const = default;
};

/// Where a window begins in a plane; it may reach beyond it on every side.
struct Window {
    int64_t top = 0;
    int64_t left = 0;
    bool mirrored = false;  ///< left and right are exchanged in it
};

/// Copies a window of each plane; what lies outside a plane is zero.
/// Shape:    planes of `from` -> as many planes of `to`, values of `value_bytes`.
/// Requires: both spans hold whole planes, as many of each.
void copy_window(std::span<const std::byte> planes, PlaneSize from, const Window& window, PlaneSize to,
                 size_t value_bytes, std::span<std::byte> out);

/// Each plane in another size, bilinear between the centres of values: what torch.nn.functional.interpolate gives of
/// the plane in double with mode="bilinear", align_corners=False and without antialias, rounded to float once: to
/// the bit for planes of bytes, for others but for values in the middle of two floats, where the order of sums decides.
/// Shape:    planes of `from` -> as many planes of `to`.
void resize_planes(std::span<const float> planes, PlaneSize from, PlaneSize to, std::span<float> out);

}  // namespace vpp::detail
