#include "data/digest.hpp"

#include "unit/data/support.hpp"

namespace vpp {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

std::string digest_of(const std::string& file) {
    const test::TemporaryFolder folder;
    Hasher hasher;
    add_file(hasher, InputFile(folder.write("file", file)));
    return to_hex(hasher.digest());
}

TEST(FileDigest, SeesTheWholeOfASmallFile) {
    const std::string text(3000, 'a');
    for (size_t at : {size_t{0}, size_t{1500}, size_t{2999}}) {
        std::string other = text;
        other[at] = 'b';
        EXPECT_NE(digest_of(text), digest_of(other)) << at;
    }
    EXPECT_EQ(digest_of(text), digest_of(std::string(3000, 'a')));
    EXPECT_NE(digest_of(""), digest_of(std::string(1, '\0')));
}

TEST(FileDigest, SeesSizeHeadAndTailOfALargeFile) {
    const std::string text(3 * kMiB, 'a');
    const auto changed = [&](size_t at) {
        std::string other = text;
        other[at] = 'b';
        return digest_of(other);
    };
    EXPECT_NE(changed(kMiB - 1), digest_of(text));
    EXPECT_NE(changed(2 * kMiB), digest_of(text));
    EXPECT_NE(digest_of(text + "a"), digest_of(text));
    // What it does not see, as documented: the middle.
    EXPECT_EQ(changed(kMiB), digest_of(text));
    EXPECT_EQ(changed(2 * kMiB - 1), digest_of(text));
}

}  // namespace
}  // namespace vpp
