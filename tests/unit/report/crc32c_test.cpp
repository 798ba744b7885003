#include "report/crc32c.hpp"

#include <gtest/gtest.h>

#include <string>

namespace vpp {
namespace {

// RFC 3720, appendix B.4.
TEST(Crc32c, HasTheValuesOfTheStandard) {
    EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
    EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
    std::string ascending;
    for (char c = 0; c < 32; ++c) ascending += c;
    EXPECT_EQ(crc32c(ascending), 0x46dd794eu);
    EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
    EXPECT_EQ(crc32c(""), 0u);
}

TEST(Crc32c, AChangedBitChangesIt) {
    std::string bytes = "123456789";
    bytes[4] ^= 1;
    EXPECT_NE(crc32c(bytes), 0xe3069283u);
}

TEST(Crc32c, TheMaskRotatesAndAdds) {
    const uint32_t sum = crc32c("foo");
    EXPECT_EQ(masked_crc32c("foo"), static_cast<uint32_t>(((sum >> 15) | (sum << 17)) + 0xa282ead8u));
    EXPECT_NE(masked_crc32c("foo"), sum);
}

}  // namespace
}  // namespace vpp
