#include <gtest/gtest.h>

#include "unit/examples/made.hpp"

namespace vpp {
namespace {

TEST(Manual, PlanAndModelFit) {
    const test::MadeFolder folder(test::make("manual"));
    const test::Rig rig = folder.rig();
    EXPECT_EQ(rig.prepared.program.training.split.stages.size(), 3U);
}

}  // namespace
}  // namespace vpp
