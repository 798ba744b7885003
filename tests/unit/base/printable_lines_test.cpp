#include "base/printable_lines.hpp"

#include <gtest/gtest.h>

namespace vpp {
namespace {

TEST(PrintableLines, KeepsLineEndsAndNoOtherControlByte) {
    EXPECT_EQ(printable_lines("a\x1b[2J\nb\rc\n"), "a?[2J\nb?c\n");
    EXPECT_EQ(printable_lines("no end"), "no end\n");
    EXPECT_EQ(printable_lines("\n\n"), "\n\n");
    EXPECT_EQ(printable_lines(""), "");
}

}  // namespace
}  // namespace vpp
