#include "data/decode.hpp"

#include <cstdint>
#include <cstring>

namespace vpp::detail {

namespace {

template <typename T>
void put_value(std::span<std::byte> out, size_t place, T value) {
    std::memcpy(out.data() + place * sizeof(T), &value, sizeof(T));
}

}  // namespace

void decode_picture(std::span<const std::byte> stored, std::span<std::byte> out) {
    constexpr float kWhite = 255;
    for (size_t i = 0; i < stored.size(); ++i)
        put_value(out, i, static_cast<float>(std::to_integer<int>(stored[i])) / kWhite);
}

void decode_labels(std::span<const std::byte> stored, std::span<std::byte> out) {
    for (size_t i = 0; i < stored.size(); ++i) put_value(out, i, std::to_integer<int64_t>(stored[i]));
}

}  // namespace vpp::detail
