#pragma once
// Values as files store them, turned into the values of fields.
#include <cstddef>
#include <span>

namespace vpp::detail {

/// Fills `out` from the stored bytes of a sample's field, value by value.
/// Requires: as many stored values as `out` has room for.
using Decode = void (*)(std::span<const std::byte> stored, std::span<std::byte> out);

/// Bytes 0..255 to float32 from 0 to 1, each divided by 255: what torchvision's ToTensor makes of a picture.
void decode_picture(std::span<const std::byte> stored, std::span<std::byte> out);

/// Bytes to int64.
void decode_labels(std::span<const std::byte> stored, std::span<std::byte> out);

/// Values of `N` bytes from big endian.
template <size_t N>
void decode_big_endian(std::span<const std::byte> stored, std::span<std::byte> out) {
    for (size_t i = 0; i < out.size(); ++i) out[i] = stored[i / N * N + (N - 1 - i % N)];
}

}  // namespace vpp::detail
