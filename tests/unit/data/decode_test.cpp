#include "data/decode.hpp"

#include <bit>

#include "unit/data/support.hpp"

namespace vpp::detail {
namespace {

template <typename T>
std::vector<T> decoded(Decode decode, const std::vector<uint8_t>& stored, size_t num_values) {
    std::vector<T> values(num_values);
    decode(std::as_bytes(std::span(stored)), std::as_writable_bytes(std::span(values)));
    return values;
}

TEST(Decode, PicturesGoFromZeroToOneAsToTensorHasThem) {
    const auto values = decoded<float>(decode_picture, {0, 1, 100, 254, 255}, 5);
    // The bits of torch.tensor([0, 1, 100, 254, 255], dtype=torch.uint8).to(torch.float32).div(255)
    const uint32_t bits[] = {0x00000000, 0x3b808081, 0x3ec8c8c9, 0x3f7efeff, 0x3f800000};
    for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(std::bit_cast<uint32_t>(values[i]), bits[i]) << i;
}

TEST(Decode, LabelsAreWholeNumbers) {
    EXPECT_EQ(decoded<int64_t>(decode_labels, {0, 9, 255}, 3), (std::vector<int64_t>{0, 9, 255}));
}

TEST(Decode, BigEndianOfEveryWidth) {
    EXPECT_EQ(decoded<int16_t>(decode_big_endian<2>, {0x01, 0x02, 0xff, 0xfe}, 2), (std::vector<int16_t>{0x0102, -2}));
    EXPECT_EQ(decoded<float>(decode_big_endian<4>, {0x3f, 0xc0, 0, 0, 0xc0, 0, 0, 0}, 2),
              (std::vector<float>{1.5, -2}));
    EXPECT_EQ(decoded<double>(decode_big_endian<8>, {0x3f, 0xf8, 0, 0, 0, 0, 0, 0}, 1), std::vector<double>{1.5});
}

}  // namespace
}  // namespace vpp::detail
