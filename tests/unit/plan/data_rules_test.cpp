#include "plan/data_rules.hpp"

#include <gtest/gtest.h>

#include "unit/plan/resolved_plans.hpp"

namespace vpp {
namespace {

using test::error_of;
using test::holds;
using test::problem;
using test::resolve;

TEST(DataRules, EachKindOfDataHasItsKeys) {
    const std::string model = "model.file = 'm'\n";
    EXPECT_TRUE(holds(problem({"data.kind=tokens"}, 1, model), "tokens data needs data.train"));
    EXPECT_TRUE(holds(problem({"data.kind=text"}, 1, model), "text data needs data.sequence_length"));
    EXPECT_TRUE(holds(problem({"data.kind=arrays"}, 1, model), "arrays data needs data.train; try [data.train]"));
    EXPECT_TRUE(holds(problem({"data.kind=synthetic"}, 1, model), "synthetic data needs data.fields"));
    EXPECT_TRUE(holds(problem({"data.kind=synthetic"}, 1, model), "synthetic data needs data.samples"));
    EXPECT_TRUE(holds(problem({"data.kind=arrays"}),
                      "data.train does not fit arrays data in this form; try [data.train] with a line field = "
                      "\"file.npy\""));
    EXPECT_TRUE(holds(problem({"data.val.x=v.npy"}), "data.val does not fit tokens data in this form; try val = ["));
    EXPECT_TRUE(holds(problem({"data.samples=5"}), "data.samples does not fit tokens data in this form; leave it out"));
    EXPECT_TRUE(holds(problem({"data.kind=text", "data.token_dtype=uint32"}), "data.token_dtype does not fit text"));
    EXPECT_TRUE(holds(problem({"data.kind=arrays", "data.train.x=x.npy", "data.weights=[1]"}, 1, model),
                      "data.weights does not fit arrays data"));
    EXPECT_TRUE(holds(problem({"data.train={ a = \"b\" }"}), "data.train"));
    EXPECT_NO_THROW(resolve({"data.kind=arrays", "data.train.x=x.npy"}, 1, model));
    EXPECT_NO_THROW(resolve({"data.kind=synthetic", "data.samples=5", "data.fields.x=float32[2]"}, 1, model));
}

TEST(DataRules, EvaluationsNeedOneKindOfValidationData) {
    EXPECT_TRUE(holds(problem({"train.eval_every=5"}),
                      "train.eval_every needs validation data; name data.val or data.val_split, or leave it out"));
    EXPECT_NO_THROW(resolve({"train.eval_every=5", "data.val=[\"v\"]"}, 1));
    EXPECT_NO_THROW(resolve({"train.eval_every=5", "data.val_split=0.1"}, 1));
    EXPECT_TRUE(
        holds(problem({"data.val_split=0.1", "data.val=[\"v\"]"}),
              "data.val_split holds out a part of data.train, and data.val names validation data already; leave "
              "one of them out"));
}

TEST(DataRules, AKindWithoutARowIsABug) {
    Plan plan = resolve({});
    plan.data.kind = "tokesn";
    EXPECT_EQ(error_of([&] { check_plan(plan); }).kind(), ErrorKind::Bug);
}

}  // namespace
}  // namespace vpp
