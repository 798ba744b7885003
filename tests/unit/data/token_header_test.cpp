#include "data/token_header.hpp"

#include "unit/data/support.hpp"

namespace vpp::detail {
namespace {

using test::error_of;
using test::raw;

/// What the reader makes of a file of that size which begins so.
TokenLayout layout_of(const std::string& begin, uint64_t size, const std::string& dtype = "auto") {
    return token_layout(std::as_bytes(std::span(begin)), size, dtype, "t.bin");
}

TEST(TokenHeader, SaysWhereTheTokensOfAnySizeLie) {
    const std::string begin = raw<int32_t>({20240520, 1, 2'000'000'000});
    const TokenLayout layout = layout_of(begin, 1024 + 4'000'000'000);
    EXPECT_EQ(layout.offset_bytes, 1024U);
    EXPECT_EQ(layout.token_bytes, 2U);
    EXPECT_EQ(layout.num_tokens, 2'000'000'000);
    EXPECT_EQ(layout_of(raw<int32_t>({20240801, 7, 0}), 1024).token_bytes, 4U);
}

TEST(TokenHeader, AFileWithoutOneIsAllTokens) {
    const TokenLayout layout = layout_of(raw<int32_t>({1, 2, 3}), uint64_t{1} << 40, "uint32");
    EXPECT_EQ(layout.offset_bytes, 0U);
    EXPECT_EQ(layout.num_tokens, int64_t{1} << 38);
    EXPECT_EQ(layout_of("ab", 2).num_tokens, 1);
}

TEST(TokenHeader, WhatDoesNotFitTheFileIsRefused) {
    const auto refusal = [](const std::string& begin, uint64_t size, const std::string& dtype = "auto") {
        return error_of(ErrorKind::BadData, [&] { layout_of(begin, size, dtype); });
    };
    EXPECT_EQ(refusal(raw<int32_t>({20240520, 1, 3}), 1024 + 4),
              "t.bin: the llm.c header does not fit the file (got a count of 3 tokens, expected 2 by the file's 1028 "
              "bytes); the file is cut short or damaged");
    EXPECT_HAS(refusal(raw<int32_t>({20240520, 1, -1}), 1024 + 4), "count of -1");
    EXPECT_EQ(refusal(raw<int32_t>({20240520, 2, 3}), 1024 + 6),
              "t.bin: unknown version of the llm.c header (got 2, expected 1 with magic 20240520)");
    EXPECT_EQ(refusal(raw<int32_t>({20240520}), 4),
              "t.bin: the llm.c header is cut short (got 4 bytes, expected 1024)");
    EXPECT_EQ(refusal(raw<int32_t>({20240521, 1, 3}) + std::string(1012, '\0'), 1024 + 6),
              "t.bin: the llm.c header is damaged: its first number (got 20240521, expected 20240520 or 20240801); "
              "copy the file anew");
    EXPECT_EQ(refusal(raw<int32_t>({20240520, 1, 2}), 1024 + 4, "uint32"),
              "t.bin: the llm.c header says uint16 and data.token_dtype says uint32; try data.token_dtype = \"auto\"");
    EXPECT_EQ(refusal("", 0), "t.bin: the file is empty");
    EXPECT_EQ(refusal("abc", 3),
              "t.bin: the size is no whole number of tokens (got 3 bytes, expected a multiple of 2); the file is cut "
              "short, or data.token_dtype is another");
}

}  // namespace
}  // namespace vpp::detail
