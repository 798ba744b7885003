#include "data/megatron_index.hpp"

#include <algorithm>

#include "unit/data/support.hpp"

namespace vpp::detail {
namespace {

using test::error_of;
using test::raw;

/// A header and so many zero bytes behind it.
std::string index_file(char code, uint64_t num_sequences, uint64_t num_borders, size_t num_behind,
                       uint64_t version = 1) {
    return std::string("MMIDIDX\0\0", 9) + raw<uint64_t>({version}) + code +
           raw<uint64_t>({num_sequences, num_borders}) + std::string(num_behind, '\0');
}

MegatronIndex read_index(const std::string& file) {
    const auto bytes = std::as_bytes(std::span(file));
    return megatron_index(bytes.first(std::min(bytes.size(), kMegatronHeaderBytes)), bytes.size(), "x.idx");
}

TEST(MegatronIndex, TellsTheWidthAndWhereTheLastSequenceStands) {
    const MegatronIndex index = read_index(index_file(8, 3, 2, 3 * 12 + 2 * 8));
    EXPECT_EQ(index.token_bytes, 2u);
    EXPECT_EQ(index.num_sequences, 3u);
    EXPECT_EQ(index.last_length_at(), 34u + 8);
    EXPECT_EQ(index.last_begin_at(), 34u + 12 + 16);
    EXPECT_EQ(read_index(index_file(8, 3, 2, 3 * 13 + 2 * 8)).num_sequences, 3u) << "with modes";
    const std::pair<char, size_t> codes[] = {{1, 1}, {3, 2}, {4, 4}, {5, 8}};
    for (const auto& [code, bytes] : codes) EXPECT_EQ(read_index(index_file(code, 1, 0, 12)).token_bytes, bytes);
}

TEST(MegatronIndex, WhatDoesNotHoldTogetherIsRefused) {
    constexpr uint64_t kHuge = uint64_t{1} << 63;
    const std::pair<std::string, const char*> files[] = {
        {"MMIDIDX",
         "x.idx: no index of Megatron-LM, but it lies beside a token file of that name; rename it, or name "
         "the type of the tokens: data.token_dtype = \"uint16\""},
        {index_file(8, 1, 0, 0).substr(0, 33), "x.idx: the index is cut short"},
        {index_file(8, 1, 0, 12, 2), "x.idx: unknown version of the index (got 2, expected 1)"},
        {index_file(7, 1, 0, 12),
         "x.idx: the index says that the tokens are of type 7 (expected 1, 3, 4, 5 or 8: whole numbers)"},
        {index_file(8, 0, 1, 8), "x.idx: the index has no sequence"},
        {index_file(8, 1, 0, 11),
         "x.idx: the index does not fit its file (got 1 sequences, 0 document borders and 45 "
         "bytes); copy the file again"},
        {index_file(8, kHuge, kHuge, 12),
         "x.idx: the index does not fit its file (got 9223372036854775808 sequences, 9223372036854775808 document "
         "borders and 46 bytes); copy the file again"},
    };
    for (const auto& [file, expected] : files) {
        EXPECT_EQ(error_of(ErrorKind::BadData, [&, text = file] { read_index(text); }), expected);
    }
}

TEST(MegatronIndex, TheLastSequenceEndsWithTheFile) {
    check_megatron_end(6, 2, 2, 10, "x.bin");
    check_megatron_end(10, 0, 2, 10, "x.bin");
    const std::tuple<int64_t, int32_t, size_t, uint64_t> wrong[] = {{6, 3, 2, 10},  {6, 1, 2, 10}, {-2, 6, 2, 10},
                                                                    {6, -2, 2, 10}, {0, 6, 2, 10}, {7, 2, 2, 11}};
    for (const auto& [begin, length, token_bytes, size] : wrong) {
        EXPECT_HAS(error_of(ErrorKind::BadData, [&, b = begin, l = length, t = token_bytes,
                                                 s = size] { check_megatron_end(b, l, t, s, "x.bin"); }),
                   "x.bin: its index does not fit it (got a last sequence of " + std::to_string(length) +
                       " tokens at byte " + std::to_string(begin));
    }
}

}  // namespace
}  // namespace vpp::detail
