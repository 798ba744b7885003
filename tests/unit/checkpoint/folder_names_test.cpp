#include "checkpoint/folder_names.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace vpp {
namespace {

TEST(FolderNames, StepHasEightDigitsOrMore) {
    EXPECT_EQ(step_folder_name(0), "step-00000000");
    EXPECT_EQ(step_folder_name(50), "step-00000050");
    EXPECT_EQ(step_folder_name(123456789012), "step-123456789012");
    EXPECT_EQ(replaced_folder_name(7), "step-00000007.old");
    EXPECT_THROW(step_folder_name(-1), Error);
}

TEST(FolderNames, EveryNameComesBack) {
    for (const int64_t step : {int64_t{0}, int64_t{50}, int64_t{99999999}, int64_t{100000000}, INT64_MAX}) {
        EXPECT_EQ(parse_step_folder(step_folder_name(step)), (StepFolder{step, false}));
        EXPECT_EQ(parse_step_folder(replaced_folder_name(step)), (StepFolder{step, true}));
    }
}

TEST(FolderNames, OtherNamesAreNoCheckpoints) {
    for (const char* name : {"", "step-", "step-50", "step-0000000050", "step-+0000050", "step--0000050",
                             "step-0000005x", "step-00000050.tmp", "step-00000050.old.old", ".tmp-step-00000050-a",
                             ".trash-step-00000050", "Step-00000050", "step-99999999999999999999", "step-00000050 "}) {
        EXPECT_EQ(parse_step_folder(name), std::nullopt) << name;
    }
}

TEST(FolderNames, LeftOversAreTold) {
    EXPECT_EQ(temporary_folder_name(50, "a1-b_2"), ".tmp-step-00000050-a1-b_2");
    EXPECT_TRUE(is_left_over(temporary_folder_name(50, "a1")));
    EXPECT_TRUE(is_left_over(trash_folder_name("step-00000050")));
    EXPECT_FALSE(is_left_over("step-00000050"));
    EXPECT_FALSE(is_left_over(".git"));
}

TEST(FolderNames, SaveIdsCannotLeaveTheFolder) {
    EXPECT_TRUE(is_save_id("20260101-120000_ab"));
    for (const std::string& id : {std::string(), std::string("../a"), std::string("a/b"), std::string("a b"),
                                  std::string("a\0b", 3), std::string(65, 'a')}) {
        EXPECT_FALSE(is_save_id(id)) << id;
        EXPECT_THROW(temporary_folder_name(1, id), Error) << id;
    }
}

TEST(FolderNames, ShardsAreNumbered) {
    EXPECT_EQ(shard_file_name(2), "shard-00002.safetensors");
    EXPECT_EQ(shard_file_name(1234567), "shard-1234567.safetensors");
    EXPECT_THROW(shard_file_name(-1), Error);
}

}  // namespace
}  // namespace vpp
