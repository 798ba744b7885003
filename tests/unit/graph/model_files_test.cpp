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

TEST(ModelFiles, NamesAreForPeople) {
    EXPECT_EQ(file_names(plan_with_files("configs/../m.pt", {})), "m.pt");
    EXPECT_EQ(file_names(plan_with_files("", {"a.pt", "x/../a.pt", "b.pt", ""})), "a.pt, b.pt");
}

}  // namespace
}  // namespace vpp
