#include "data/idx_header.hpp"

#include <algorithm>

#include "unit/data/idx_files.hpp"
#include "unit/data/support.hpp"

namespace vpp::detail {
namespace {

using test::idx;

IdxLayout idx_layout_of(const std::string& file) {
    const auto bytes = std::as_bytes(std::span(file));
    return idx_layout(bytes.first(std::min(bytes.size(), kMaxIdxBeginBytes)), bytes.size(), "x");
}

TEST(IdxHeader, TypeAndDimsAreRead) {
    const IdxLayout pictures = idx_layout_of(idx(0x08, {2, 3, 4}, std::string(24, 'p')));
    EXPECT_EQ(pictures.dtype, DType::U8);
    EXPECT_EQ(pictures.shape, (std::vector<int64_t>{2, 3, 4}));
    EXPECT_EQ(pictures.offset_bytes, 16u);
    const std::pair<char, DType> types[] = {
        {0x09, DType::I8}, {0x0B, DType::I16}, {0x0C, DType::I32}, {0x0D, DType::F32}, {0x0E, DType::F64}};
    for (const auto& [code, dtype] : types) {
        const IdxLayout layout = idx_layout_of(idx(code, {300}, std::string(300 * size_of(dtype), '\0')));
        EXPECT_EQ(layout.dtype, dtype);
        EXPECT_EQ(layout.shape, std::vector<int64_t>{300});
    }
    EXPECT_EQ(idx_layout_of(idx(0x08, std::vector<uint32_t>(8, 1), "p")).shape.size(), 8u);
}

TEST(IdxHeader, WhatIsNoIdxIsRefused) {
    const std::pair<std::string, const char*> files[] = {
        {"", "x: too short for an IDX file"},
        {std::string(3, '\0'), "x: too short for an IDX file"},
        {"\x1f\x8b\x08\x08pictures", "x: compressed; unpack it with gunzip"},
        {idx(0x07, {1}, "p"), "x: not an IDX file: it does not begin with two zero bytes and the code of a type"},
        {"\x93NUMPY", "x: not an IDX file: it does not begin with two zero bytes and the code of a type"},
        {idx(0x08, {}, "p"), "x: 0 dims (expected 1 to 8)"},
        {idx(0x08, std::vector<uint32_t>(9, 1), "p"), "x: 9 dims (expected 1 to 8)"},
        {idx(0x08, {2, 2}, "").substr(0, 11), "x: the IDX header is cut short"},
        {idx(0x08, {2, 0}, ""), "x: holds no values (got shape [2, 0])"},
        {idx(0x08, {2, 2}, "abc"),
         "x: the IDX header does not fit the file (got shape [2, 2] of uint8, and 3 bytes); copy the file again"},
        {idx(0x0D, {1}, "abcde"),
         "x: the IDX header does not fit the file (got shape [1] of float32, and 5 bytes); copy the file again"},
    };
    for (const auto& [file, expected] : files) {
        EXPECT_EQ(test::error_of(ErrorKind::BadData, [&, text = file] { idx_layout_of(text); }), expected);
    }
}

TEST(IdxHeader, ALyingShapeDoesNotWrapAround) {
    // Their product is 2^96, and 0 in 64 bits.
    const std::string file = idx(0x08, {1u << 31, 1u << 31, 1u << 31, 8}, "");
    EXPECT_HAS(test::error_of(ErrorKind::BadData, [&] { idx_layout_of(file); }), "does not fit the file");
}

}  // namespace
}  // namespace vpp::detail
