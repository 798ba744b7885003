#include "data/zip_directory.hpp"

#include <algorithm>

#include "base/random.hpp"
#include "unit/data/support.hpp"
#include "unit/data/zip_files.hpp"

namespace vpp::detail {
namespace {

using test::error_of;
using test::zip_file;

std::span<const std::byte> span_of(const std::string& file) {
    return std::as_bytes(std::span(file));
}

ZipEnd end_of(const std::string& file) {
    const size_t tail_bytes = std::min(file.size(), kMaxZipEndBytes);
    return zip_end(span_of(file).last(tail_bytes), file.size(), "a.npz");
}

std::vector<ZipEntry> entries_of(const std::string& file) {
    const ZipEnd end = end_of(file);
    return zip_entries(span_of(file).subspan(end.offset_bytes, end.size_bytes), end, "a.npz");
}

/// What a stored entry holds, as the file has it.
std::string contents(const std::string& file, const ZipEntry& entry) {
    const auto from = span_of(file).subspan(entry.header_offset_bytes);
    const auto header = from.first(std::min(from.size(), kZipLocalHeaderBytes + entry.name.size()));
    return file.substr(zip_data_offset(header, entry, end_of(file), "a.npz"), entry.size_bytes);
}

std::string refusal(const std::string& file) {
    return error_of(ErrorKind::BadData, [&] {
        for (const ZipEntry& entry : entries_of(file)) contents(file, entry);
    });
}

TEST(ZipDirectory, EntriesLieWhereItSays) {
    const std::string file = zip_file({{"a.npy", "first"}, {"b.npy", ""}, {"deep/c", "third", 8}}, "a comment");
    const std::vector<ZipEntry> entries = entries_of(file);
    ASSERT_EQ(entries.size(), 3u);
    EXPECT_EQ(entries[0].name, "a.npy");
    EXPECT_EQ(contents(file, entries[0]), "first");
    EXPECT_EQ(contents(file, entries[1]), "");
    EXPECT_EQ(entries[2].name, "deep/c");
    EXPECT_FALSE(entries[2].stored);
    EXPECT_FALSE(entries_of(zip_file({{"a", "secret", 0, 1}}))[0].stored);
    EXPECT_TRUE(entries_of(zip_file({})).empty());
}

TEST(ZipDirectory, NumbersOf64BitsAreRead) {
    const std::vector<test::ZipItem> items{{"a.npy", "first", 0, 0, "a.npy", true}, {"b.npy", "second"}};
    const test::ZipParts parts = test::zip_parts(items);
    const std::string whole = parts.entries + parts.directory;
    const std::string file = whole + test::zip_wide_last(2, parts.directory.size(), parts.entries.size());
    const std::vector<ZipEntry> entries = entries_of(file);
    EXPECT_EQ(contents(file, entries.at(0)), "first");
    EXPECT_EQ(contents(file, entries.at(1)), "second");
    EXPECT_EQ(refusal(whole + test::zip_last(2, UINT32_MAX, 0)),
              "a.npz: byte " + std::to_string(whole.size()) + ": the zip file lacks its 64-bit end record");
    // 64-bit sizes that are announced and not there.
    std::string bare = zip_file({{"a.npy", "first"}});
    bare.replace(bare.find("PK\1\2") + 20, 4, std::string(4, '\xff'));
    EXPECT_HAS(refusal(bare), "a zip entry lacks its 64-bit sizes");
}

TEST(ZipDirectory, NumbersOf64BitsMayFitIntoTheLastRecordToo) {
    const test::ZipParts parts = test::zip_parts({{"a.npy", "first"}});
    const size_t size = parts.directory.size(), offset = parts.entries.size();
    const std::string whole = parts.entries + parts.directory;
    const std::string file = whole + test::zip_wide_last(1, size, offset, test::zip_last(1, size, offset, "a comment"));
    EXPECT_EQ(contents(file, entries_of(file).at(0)), "first");
    EXPECT_HAS(refusal(whole + test::zip_wide_last(1, size + 1, offset, test::zip_last(1, size, offset))),
               "does not fit the file");
    // What only ends as a locator does is part of the directory.
    const std::string locator = "PK\6\7" + std::string(16, '\0');
    const std::string odd = test::zip_file({{"a.npy", "first"}, {std::string(60, 'x') + locator, "", 8}});
    EXPECT_EQ(contents(odd, entries_of(odd).at(0)), "first");
}

TEST(ZipDirectory, EndsThatDoNotFitAreRefused) {
    const std::string good = zip_file({{"a.npy", "first"}});
    const std::string none = "a.npz: not a zip file: its end is missing; try np.savez, or copy the file anew";
    EXPECT_EQ(refusal(""), none);
    EXPECT_EQ(refusal(good.substr(0, good.size() - 1)), none);
    EXPECT_EQ(refusal(good + "x"), none);
    EXPECT_HAS(refusal("x" + good), "the zip directory does not fit the file (got 51 bytes from byte 60 on)");
    const test::ZipParts parts = test::zip_parts({{"a.npy", "first"}});
    const std::string whole = parts.entries + parts.directory;
    EXPECT_HAS(refusal(whole + test::zip_last(1, parts.directory.size() + 1, parts.entries.size())), "does not fit");
    EXPECT_HAS(refusal(whole + test::zip_last(1, 1u << 27, 0)),
               "a zip directory of 134217728 bytes (expected at most 67108864)");
    EXPECT_HAS(refusal(whole + test::zip_wide_last(1, UINT64_MAX, 2)), "a zip directory of 18446744073709551615 bytes");
    EXPECT_HAS(refusal(whole + test::zip_wide_last(1, 8, UINT64_MAX - 4)), "does not fit the file");
    std::string parted = good;
    parted[good.size() - 18] = 1;
    EXPECT_HAS(refusal(parted), "a zip archive of several files is not read");
    EXPECT_EQ(refusal(whole + test::zip_last(2, parts.directory.size(), parts.entries.size())),
              "a.npz: byte 60: the zip directory has 1 entries (expected 2)");
}

TEST(ZipDirectory, EntriesThatDoNotFitAreRefused) {
    const std::string good = zip_file({{"a.npy", "first"}});
    const size_t listing = good.find("PK\1\2");
    ASSERT_EQ(listing, 60u);
    const auto with = [&](size_t offset, const std::string& bytes) {
        std::string file = good;
        return file.replace(offset, bytes.size(), bytes);
    };
    EXPECT_EQ(refusal(with(listing, "xx")), "a.npz: byte 60: the zip directory is damaged");
    EXPECT_EQ(refusal(with(listing + 28, "\x06")), "a.npz: byte 60: a zip entry reaches behind the directory");
    EXPECT_EQ(refusal(with(listing + 20, "\x04")),
              "a.npz: byte 60: the zip entry 'a.npy' has two sizes (got 4 and 5 bytes)");
    EXPECT_EQ(refusal(with(listing + 42, "\x3d")), "a.npz: byte 60: the zip entry 'a.npy' does not fit the file");
    EXPECT_HAS(refusal(with(listing + 20, test::little(60, 4) + test::little(60, 4))), "does not fit the file");
    EXPECT_HAS(refusal(zip_file({{"a.npy", "1"}, {"a.npy", "2"}})), "the zip entry 'a.npy' is there twice");
    // The name becomes two bytes shorter; what is then an extra field does not hold what it says.
    EXPECT_HAS(refusal(with(listing + 28, std::string("\1\0\4\0", 4))),
               "the extra fields of a zip entry are cut short");
    const std::string other = "a.npz: byte 0: the zip entry 'a.npy' has another header than the directory says";
    EXPECT_EQ(refusal(with(0, "xx")), other);
    EXPECT_EQ(refusal(with(8, "\x08")), other);
    EXPECT_EQ(refusal(zip_file({{"a.npy", "first", 0, 0, "b.npy"}})), other);
    EXPECT_EQ(refusal(with(28, "\x15")), "a.npz: byte 0: the bytes of the zip entry 'a.npy' reach into the directory");
}

TEST(ZipDirectory, RandomDamageEndsInAnErrorOrInsideTheFile) {
    const std::string good = zip_file({{"a.npy", "first"}, {"b.npy", "second", 0, 0, "b.npy", true}});
    int refused = 0;
    for (uint64_t i = 0; i < 5000; ++i) {
        std::string bad = good;
        for (uint64_t hit = 0; hit <= i % 3; ++hit) {
            const uint64_t random = combine_key(i, hit);
            bad[random % bad.size()] = static_cast<char>(random >> 32);
        }
        try {
            for (const ZipEntry& entry : entries_of(bad)) {
                const bool whole = !entry.stored || contents(bad, entry).size() == entry.size_bytes;
                EXPECT_TRUE(whole);
            }
        } catch (const Error& error) {
            ++refused;
            EXPECT_EQ(exit_code(error.kind()), 65) << error.what();
        }
    }
    EXPECT_GT(refused, 1000);
    EXPECT_LT(refused, 5000);
}

}  // namespace
}  // namespace vpp::detail
