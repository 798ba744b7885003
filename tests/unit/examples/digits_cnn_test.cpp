#include <gtest/gtest.h>

#include "unit/examples/made.hpp"

namespace vpp {
namespace {

TEST(DigitsCnn, PlanAndModelFit) {
    const test::MadeFolder folder(test::make("digits-cnn"));
    const test::Rig rig = folder.rig();
    EXPECT_EQ(rig.prepared.program.training.split.stages.size(), 2U);
}

}  // namespace
}  // namespace vpp
