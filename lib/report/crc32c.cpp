#include "report/crc32c.hpp"

#include <array>

namespace vpp {

namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // reflected
constexpr uint32_t kMask = 0xa282ead8;

constexpr std::array<uint32_t, 256> make_table() {
    std::array<uint32_t, 256> table{};
    for (uint32_t byte = 0; byte < 256; ++byte) {
        uint32_t rest = byte;
        for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ (rest & 1 ? kPolynomial : 0);
        table[byte] = rest;
    }
    return table;
}

constexpr std::array<uint32_t, 256> kTable = make_table();

}  // namespace

uint32_t crc32c(std::string_view bytes) {
    uint32_t rest = ~uint32_t{0};
    for (const char c : bytes) rest = (rest >> 8) ^ kTable[(rest ^ static_cast<unsigned char>(c)) & 0xff];
    return ~rest;
}

uint32_t masked_crc32c(std::string_view bytes) {
    const uint32_t sum = crc32c(bytes);
    return ((sum >> 15) | (sum << 17)) + kMask;
}

}  // namespace vpp
