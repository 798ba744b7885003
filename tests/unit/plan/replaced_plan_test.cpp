#include "plan/replaced_plan.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "plan/reader.hpp"
#include "plan/rules.hpp"
#include "unit/plan/plan_texts.hpp"

namespace vpp {
namespace {

namespace fs = std::filesystem;
using test::built_names;

class ReplacedPlanTest : public ::testing::Test {
  protected:
    void SetUp() override { fs::create_directories(folder_); }
    void TearDown() override { fs::remove_all(folder_); }
    Plan plan_of(const std::string& text, std::vector<std::string> overrides = {}) const {
        write_file_durably(file_, text);
        overrides.push_back("run.dir=" + folder_.string());
        return resolve_plan(load_plan(file_, overrides, built_names()), 1);
    }
    static std::string refusal(const Plan& plan) {
        try {
            check_replaced_plan(plan, built_names());
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), ErrorKind::Plan);
            return error.problems().at(0).message;
        }
        return "";
    }
    std::string lost() const {
        return "run.dir is the folder of this plan, so a training would replace " + file_.string() +
               " by the plan with all its defaults and without its comments; set run.dir to another folder, or give "
               "the plan another name";
    }
    const fs::path folder_ = fs::temp_directory_path() / ("vpp-replaced-plan-" + std::to_string(::getpid()));
    const fs::path file_ = folder_ / "plan.toml";
};

TEST_F(ReplacedPlanTest, APlanOfAPersonIsNotReplaced) {
    EXPECT_EQ(refusal(plan_of("# mine\n" + test::kShortPlan)), lost());
    Plan elsewhere = plan_of("# mine\n" + test::kShortPlan);
    elsewhere.run.dir = (folder_ / "run").string();
    EXPECT_EQ(refusal(elsewhere), "");
    fs::create_symlink(folder_, elsewhere.run.dir);
    EXPECT_NE(refusal(elsewhere), "") << "the same folder by another name";
    fs::rename(file_, folder_ / "p.toml");
    elsewhere.file = (folder_ / "p.toml").string();
    EXPECT_EQ(refusal(elsewhere), "");
}

TEST_F(ReplacedPlanTest, AResolvedPlanGoesOnInItsFolder) {
    const std::string text = plan_of("# mine\n" + test::kShortPlan).resolved_text;
    EXPECT_EQ(refusal(plan_of(text)), "");
    EXPECT_EQ(refusal(plan_of(text, {"train.steps=7"})), "");
    EXPECT_EQ(refusal(plan_of(text + "# mine\n")), lost());
    std::string earlier = text;  // of a vpp that did not know a key
    const size_t line = earlier.find("max_failures");
    ASSERT_NE(line, std::string::npos);
    earlier.erase(line, earlier.find('\n', line) + 1 - line);
    EXPECT_EQ(refusal(plan_of(earlier)), "");
}

}  // namespace
}  // namespace vpp
