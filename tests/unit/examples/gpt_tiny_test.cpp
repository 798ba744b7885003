#include <gtest/gtest.h>

#include "unit/examples/made.hpp"

namespace vpp {
namespace {

TEST(GptTiny, PlanAndModelFit) {
    const test::MadeFolder folder(test::make("gpt-tiny"));
    const test::Rig rig = folder.rig();
    EXPECT_EQ(rig.prepared.program.training.split.stages.size(), 2U);
    EXPECT_GT(rig.legal_cuts().size(), 20U);
}

}  // namespace
}  // namespace vpp
