#include "base/few.hpp"

#include <gtest/gtest.h>

namespace vpp {
namespace {

TEST(Few, TheRestIsCounted) {
    EXPECT_EQ(few_text({}, 2), "");
    EXPECT_EQ(few_text({"a", "b"}, 2), "a, b");
    EXPECT_EQ(few_text({"a", "b", "c", "d"}, 2), "a, b and 2 more");
}

TEST(Few, NamesAreQuotedAndPrintable) {
    EXPECT_EQ(few_names_text({"a", "b.c", "d"}, 2), "'a', 'b.c' and 1 more");
    EXPECT_EQ(few_names_text({"a\x1b"}, 2).find('\x1b'), std::string::npos);
}

TEST(Few, Ranks) {
    EXPECT_EQ(ranks_text({3}), "rank 3");
    EXPECT_EQ(ranks_text({0, 2, 5}), "ranks 0, 2, 5");
}

}  // namespace
}  // namespace vpp
