#include "base/hash.hpp"

#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "base/bytes.hpp"

namespace vpp {
namespace {

// From xxHash's own description of XXH3-128 with seed 0.
TEST(Hash, KnownValues) {
    EXPECT_EQ(to_hex(hash_text("")), "99aa06d3014798d86001c324468d497f");
    EXPECT_EQ(to_hex(hash_text("a")), "a96faf705af16834e6c632b61e964e1f");
    EXPECT_EQ(to_hex(hash_text("abc")), "06b05ab6733a618578af5f94892f3950");
}

TEST(Hash, TextOfADigestGoesThereAndBack) {
    const Digest digest{0x0123456789abcdefULL, 1};
    EXPECT_EQ(to_hex(digest), "0123456789abcdef0000000000000001");
    EXPECT_EQ(digest_from_hex(to_hex(digest)), digest);
}

TEST(Hash, OtherTextsAreNoDigests) {
    const std::string good = to_hex(hash_text("a"));
    EXPECT_FALSE(digest_from_hex(""));
    EXPECT_FALSE(digest_from_hex(good.substr(1)));
    EXPECT_FALSE(digest_from_hex(good + "0"));
    for (char bad : {'A', 'g', ' ', '/', ':', '`', '\0'}) {
        std::string text = good;
        text[31] = bad;
        EXPECT_FALSE(digest_from_hex(text)) << bad;
    }
}

TEST(Hasher, PiecesGiveTheHashOfTheWhole) {
    std::string text;
    for (int i = 0; i < 5000; ++i) text += static_cast<char>(i * 31);
    for (size_t piece : {1U, 7U, 256U, 4999U, 5000U}) {
        Hasher hasher;
        for (size_t at = 0; at < text.size(); at += piece) hasher.add(to_bytes(text.substr(at, piece)));
        EXPECT_EQ(hasher.digest(), hash_text(text)) << piece;
    }
}

TEST(Hasher, TextsKeepTheirBorders) {
    const auto digest_of = [](std::initializer_list<const char*> texts) {
        Hasher hasher;
        for (const char* text : texts) hasher.add_text(text);
        return hasher.digest();
    };
    const std::set<Digest> digests{digest_of({"ab", "c"}), digest_of({"a", "bc"}), digest_of({"abc"}),
                                   digest_of({"abc", ""}), digest_of({})};
    EXPECT_EQ(digests.size(), 5U);
}

TEST(Hasher, OneFlippedBitChangesTheDigest) {
    Bytes bytes(1000);
    const Digest before = hash_bytes(bytes);
    for (size_t at : {0U, 1U, 500U, 999U}) {
        Bytes flipped = bytes;
        flipped[at] ^= std::byte{1};
        EXPECT_NE(hash_bytes(flipped), before);
    }
}

TEST(Hasher, CanBeMovedAndAskedTwice) {
    Hasher hasher;
    hasher.add(to_bytes("a"));
    Hasher moved(std::move(hasher));
    EXPECT_EQ(moved.digest(), hash_text("a"));
    moved.add(to_bytes("bc"));
    EXPECT_EQ(moved.digest(), hash_text("abc"));
}

}  // namespace
}  // namespace vpp
