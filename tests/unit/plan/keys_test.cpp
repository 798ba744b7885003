#include "plan/keys.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace vpp {
namespace {

TEST(Keys, DefaultsAreThoseOfTheDesign) {
    EXPECT_EQ(default_text(*find_key("pipeline.split_method")), "\"FLOPS\"");
    EXPECT_EQ(default_text(*find_key("pipeline.num_microbatches")), "2 x pp");
    EXPECT_EQ(default_text(*find_key("optimizer.lr")), "0.001");
    EXPECT_EQ(default_text(*find_key("optimizer.betas")), "[0.9, 0.999]");
    EXPECT_EQ(default_text(*find_key("optimizer.group.lr")), "the optimizer's");
    EXPECT_EQ(default_text(*find_key("loss.ignore_index")), "-100");
    EXPECT_EQ(default_text(*find_key("model.file")), "required");
    EXPECT_EQ(default_text(*find_key("pipeline.forward_only")), "false");
}

TEST(Keys, RangesAreWrittenForPeople) {
    EXPECT_EQ((Range{1, 8}).text(), "1 to 8");
    EXPECT_EQ((Range{1, 1}).text(), "1");
    EXPECT_EQ((Range{.low = 0}).text(), "at least 0");
    EXPECT_EQ((Range{.high = 2}).text(), "at most 2");
    EXPECT_EQ((Range{.low = 0, .without_low = true}).text(), "over 0");
    EXPECT_EQ((Range{.low = 0, .high = 1, .without_high = true}).text(), "at least 0 and below 1");
    EXPECT_EQ(Range{}.text(), "");
    EXPECT_FALSE((Range{.low = 0, .high = 1, .without_high = true}).contains(1));
    EXPECT_FALSE((Range{.low = 0, .without_low = true}).contains(0));
    EXPECT_FALSE((Range{0, 1}).contains(std::numeric_limits<double>::quiet_NaN()));
}

TEST(Keys, SectionsAreKnown) {
    EXPECT_TRUE(is_section("pipeline"));
    EXPECT_TRUE(is_section("pipeline.recompute"));
    EXPECT_FALSE(is_section("pipe"));
    EXPECT_EQ(find_key("pipeline"), nullptr);
    EXPECT_EQ(section_of(*find_key("optimizer.group.lr")), "optimizer.group");
}

}  // namespace
}  // namespace vpp
