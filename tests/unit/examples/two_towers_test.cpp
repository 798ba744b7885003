#include <gtest/gtest.h>

#include "engine/verify.hpp"
#include "unit/examples/made.hpp"

namespace vpp {
namespace {

TEST(TwoTowers, PlanAndModelFit) {
    const test::MadeFolder folder(test::make("two-towers"));
    const test::Rig rig = folder.rig();
    EXPECT_EQ(rig.prepared.program.training.split.stages.size(), 2U);
}

TEST(TwoTowers, DataIsTheSameEverywhere) {
    EXPECT_EQ(test::data_digest(test::make("two-towers")), "@@GOLDEN@@");
}

}  // namespace
}  // namespace vpp
