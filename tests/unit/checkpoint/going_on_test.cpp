#include "checkpoint/going_on.hpp"

#include <gtest/gtest.h>

namespace vpp {

TEST(GoingOn, NamesWhatElseTheCommandTakes) {
    EXPECT_EQ(how_to_go_on("auto"), "the same command goes on");
    for (const char* resume : {"none", "runs/a/step_00000010"}) {
        EXPECT_EQ(how_to_go_on(resume), "the same command with --set checkpoint.resume=auto goes on");
    }
}

}  // namespace vpp
