#include "plan/unknown_key.hpp"

#include <gtest/gtest.h>

#include "unit/plan/plan_texts.hpp"

namespace vpp {
namespace {

std::string answer(const char* name) {
    return unknown_name_answer(name, test::built_names());
}

TEST(UnknownKey, InASectionItsOwnNamesAndThoseElsewhereAreKnown) {
    EXPECT_EQ(unknown_answer("pipeline", "num_stage"), "; did you mean 'num_stages'?");
    EXPECT_EQ(unknown_answer("train", "num_stages"), "; did you mean pipeline.num_stages?");
    EXPECT_EQ(unknown_answer("eval", "every"), "; did you mean train.eval_every?");
    EXPECT_EQ(unknown_answer("train", "every"),
              "; did you mean pipeline.recompute.every, checkpoint.every or report.every?");
    EXPECT_EQ(unknown_answer("", "recompute"), "; did you mean section pipeline.recompute?");
    EXPECT_EQ(unknown_answer("pipeline", "shared_modules"), "; leave it out: tied parameters are found in the model");
    EXPECT_EQ(unknown_answer("pipeline", "zzzzzz"), "");
}

TEST(UnknownKey, NamesOfOtherTrainersAreKnown) {
    EXPECT_EQ(unknown_answer("optimizer", "learning_rate"), "; did you mean lr?");
    EXPECT_EQ(answer("optimizer.learning_rate"), "; did you mean lr?");
    EXPECT_EQ(unknown_answer("train", "bf16"), "; did you mean train.precision, as in precision = \"bf16\"?");
    EXPECT_EQ(unknown_answer("optimizer", "name"), "; did you mean optimizer.kind?");
    EXPECT_EQ(answer("lr_schedule.name"), "; did you mean lr_schedule.kind?");
    EXPECT_EQ(unknown_answer("train", "name"), "; did you mean pipeline.stage.name?") << "where nobody has it";
    EXPECT_EQ(answer("--micro-batch-size"), unknown_answer("", "micro_batch_size"));
    EXPECT_EQ(answer("activation_checkpoint.mode"), "; did you mean section pipeline.recompute?");
}

TEST(UnknownKey, ATypedNameIsLookedForEverywhere) {
    EXPECT_EQ(answer("pipeline.num_stage"), "; did you mean 'pipeline.num_stages'?");
    EXPECT_EQ(answer("num_stage"), "; did you mean 'pipeline.num_stages'?");
    EXPECT_EQ(answer("pipelin.num_stages"), "; did you mean 'pipeline.num_stages'?");
    EXPECT_EQ(answer("optimiser"), "; did you mean 'optimizer'?");
    EXPECT_EQ(answer("tracer_type"), "; leave it out: tracing is done when the model is exported to TorchScript");
    EXPECT_EQ(answer("pipeline.tracer_type"), answer("tracer_type"));
    EXPECT_EQ(answer("zero_bubble_v"), "; it is a word of pipeline.schedule_type");
    EXPECT_EQ(answer("SIMPLE_1F1B"), "; it is a word of pipeline.schedule_type");
    EXPECT_EQ(answer("cifar10"), "; it is a word of data.kind");
    EXPECT_EQ(answer("microbatches"), "; did you mean 'pipeline.num_microbatches'?");
    EXPECT_EQ(answer("backward"), "; these speak of it: pipeline.recompute.what");
    EXPECT_EQ(answer("zzzzzzzzzzzz"), "; vpp explain lists the sections");
    EXPECT_EQ(answer(""), "; vpp explain lists the sections");
}

TEST(UnknownKey, NamesOfASectionAreKeysAndSectionsBelow) {
    EXPECT_EQ(names_in("pipeline.search"), (std::vector<std::string>{"moves", "objective", "seed"}));
    EXPECT_TRUE(names_in("nothing").empty());
}

}  // namespace
}  // namespace vpp
