#include <gtest/gtest.h>

#include "engine/verify.hpp"
#include "unit/examples/made.hpp"

namespace vpp {
namespace {

TEST(GptTiny, PlanAndModelFit) {
    const test::MadeFolder folder(test::make("gpt-tiny"));
    const test::Rig rig = folder.rig();
    EXPECT_EQ(rig.prepared.program.training.split.stages.size(), 2U);
    EXPECT_EQ(rig.graph().num_legal_cuts(), 0) << "counted once it was seen";
}

TEST(GptTiny, DataIsTheSameEverywhere) {
    EXPECT_EQ(test::data_digest(test::make("gpt-tiny")), "@@GOLDEN@@");
}

}  // namespace
}  // namespace vpp
