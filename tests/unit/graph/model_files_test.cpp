#include "graph/model_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "unit/graph/models.hpp"

namespace vpp {
namespace {

using namespace test;
using ::testing::HasSubstr;

Plan plan_with_files(const std::string& model, const std::vector<std::string>& files) {
    Plan plan;
    plan.model.file = model;
    for (size_t i = 0; i < files.size(); ++i) {
        plan.pipeline.stages.push_back({"s" + std::to_string(i), files[i], {}, {}, {}});
        plan.positions["pipeline.stage[" + std::to_string(i) + "].file"] = {"plan.toml", 10 + static_cast<int>(i), 8,
                                                                            ""};
    }
    return plan;
}

TEST(ModelFiles, OpensOneModelOrOneFileAStage) {
    const std::string a = save(linear(2, 2)), b = save(linear(2, 2));
    EXPECT_TRUE(open_model_files(plan_with_files(a, {})).model);
    const ModelFiles files = open_model_files(plan_with_files("", {a, "", b}));
    EXPECT_FALSE(files.model);
    ASSERT_EQ(files.stages.size(), 3U);
    EXPECT_FALSE(files.stages[1]);
    EXPECT_EQ(files.stages[2]->path(), b);
}

TEST(ModelFiles, AllThatAreMissingAreSaidAtTheirPlaces) {
    const std::string good = save(linear(2, 2));
    const std::string text = refusal(ErrorKind::MissingInput, [&] {
        open_model_files(plan_with_files("", {"/nonexistent/a.pt", good, "/nonexistent/b.pt"}));
    });
    EXPECT_THAT(text, HasSubstr("plan.toml:10:8: cannot open the model file /nonexistent/a.pt"));
    EXPECT_THAT(text, HasSubstr("plan.toml:12:8: cannot open the model file /nonexistent/b.pt"));
}

TEST(ModelFiles, ABrokenFileIsBadData) {
    const std::filesystem::path path = save(linear(2, 2));
    std::ofstream(path, std::ios::trunc) << "no zip";
    EXPECT_THAT(refusal(ErrorKind::BadData, [&] { open_model_files(plan_with_files("", {path})); }),
                HasSubstr("plan.toml:10:8: "));
}

TEST(ModelFiles, EvaluationHasFilesOfItsOwnWhereThePlanNamesThem) {
    const std::string a = save(linear(2, 2)), b = save(linear(2, 2)), twin = save(linear(2, 2));
    Plan plan = plan_with_files(a, {});
    EXPECT_FALSE(open_model_files(plan).evaluation);
    EXPECT_FALSE(open_model_files(plan).has_two(-1));
    plan.model.eval_file = twin;
    const ModelFiles one = open_model_files(plan);
    EXPECT_EQ(one.in_mode(true).file_of(-1)->path(), a);
    EXPECT_EQ(one.in_mode(false).file_of(-1)->path(), twin);
    EXPECT_TRUE(one.has_two(-1));
    EXPECT_EQ(file_names(one), a);
    EXPECT_EQ(file_names(*one.evaluation), twin);

    plan = plan_with_files("", {a, b});
    plan.pipeline.stages[1].eval_file = twin;
    const ModelFiles stages = open_model_files(plan);
    EXPECT_EQ(stages.in_mode(false).file_of(0)->path(), a);
    EXPECT_EQ(stages.in_mode(false).file_of(1)->path(), twin);
    EXPECT_FALSE(stages.has_two(0));
    EXPECT_TRUE(stages.has_two(1));
    plan.pipeline.stages[1].eval_file = "/nonexistent/e.pt";
    plan.positions["pipeline.stage[1].eval_file"] = {"plan.toml", 20, 8, ""};
    EXPECT_THAT(refusal(ErrorKind::MissingInput, [&] { open_model_files(plan); }),
                HasSubstr("plan.toml:20:8: cannot open the model file /nonexistent/e.pt"));
}

TEST(ModelFiles, NamesAreForPeople) {
    EXPECT_EQ(file_names(plan_with_files("configs/../m.pt", {})), "m.pt");
    EXPECT_EQ(file_names(plan_with_files("", {"a.pt", "x/../a.pt", "b.pt", ""})), "a.pt, b.pt");
    Plan plan = plan_with_files("m.pt", {"a.pt", ""});
    plan.model.eval_file = "m_eval.pt";
    plan.pipeline.stages[0].eval_file = "a_eval.pt";
    EXPECT_EQ(file_names(plan), "m.pt, m_eval.pt, a.pt, a_eval.pt");
}

}  // namespace
}  // namespace vpp
