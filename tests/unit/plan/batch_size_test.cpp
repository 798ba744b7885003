#include "plan/batch_size.hpp"

#include <gtest/gtest.h>

#include "plan/reader.hpp"
#include "plan/rules.hpp"
#include "unit/plan/plan_texts.hpp"

namespace vpp {
namespace {

TEST(BatchSize, IsDividedByMicrobatchesRunsAndReplicas) {
    const std::vector<std::string> arguments{"train.accumulate=3", "pipeline.num_microbatches=4", "mesh.dp=2",
                                             "mesh.pp=2", "train.global_batch_size=120"};
    const Plan plan = resolve_plan(parse_plan(test::kShortPlan, "p.toml", arguments, test::built_names()), 4);
    EXPECT_EQ(microbatches_of_step(plan), 12);
    EXPECT_EQ(parts_of_batch(plan), 24);
    EXPECT_EQ(samples_of_microbatch(plan), 5);
    const Plan one = with_one_run(plan);
    EXPECT_EQ(microbatches_of_step(one), 4);
    EXPECT_EQ(samples_of_microbatch(one), 5);
}

TEST(BatchSize, OfSoManyBatchesOrOfAllSamples) {
    EXPECT_EQ(samples_of_batches(107, 20, 2), 40);
    EXPECT_EQ(samples_of_batches(107, 20, 5), 100);
    EXPECT_EQ(samples_of_batches(107, 20, 6), 107);
    EXPECT_EQ(samples_of_batches(107, 20, 0), 107);
}

}  // namespace
}  // namespace vpp
