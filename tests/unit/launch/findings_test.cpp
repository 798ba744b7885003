#include "launch/findings.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace vpp {
namespace {

const std::vector<Finding> kFindings{
    {FindingLevel::Ok, "build", "vpp 0.1.0 with LibTorch 2.11.0, kernels for AVX512", ""},
    {FindingLevel::Note, "MPI", "a bare mpirun starts no more ranks than cores (2)",
     "vpp run does it; or mpirun --oversubscribe"},
    {FindingLevel::Bad, "disk",
     "runs/gpt: nothing can be written there, /proc: Permission denied, which is longer than a line",
     "name a folder that can be written: --set run.dir=FOLDER", 73},
    {FindingLevel::Bad, "plan", "plan.toml:3:1: unknown key 'fiel'\nfiel = \"x.pt\"\n^", "", 78},
};

TEST(Findings, OneScreen) {
    EXPECT_EQ(to_text(kFindings, false), R"(ok       build     vpp 0.1.0 with LibTorch 2.11.0, kernels for AVX512
note     MPI       a bare mpirun starts no more ranks than cores (2)
                   fix: vpp run does it; or mpirun --oversubscribe
problem  disk      runs/gpt: nothing can be written there, /proc: Permission
                   denied, which is longer than a line
                   fix: name a folder that can be written: --set run.dir=FOLDER
problem  plan      plan.toml:3:1: unknown key 'fiel'
fiel = "x.pt"
^

2 problems, 1 note; train would end with code 73
)");
}

TEST(Findings, ColourMarksTheLevelAndChangesNothingElse) {
    std::string text = to_text(kFindings, true);
    EXPECT_TRUE(text.starts_with("\033[32mok       \033[0mbuild     vpp"));
    for (const char* code : {"\033[32m", "\033[33m", "\033[31m", "\033[0m"}) {
        for (size_t at; (at = text.find(code)) != text.npos;) text.erase(at, std::string(code).size());
    }
    EXPECT_EQ(text, to_text(kFindings, false));
}

TEST(Findings, LinesAreNoWiderThan80) {
    std::string words;
    for (int i = 0; i < 100; ++i) words += std::string(static_cast<size_t>(i % 17 + 1), 'x') + " ";
    std::istringstream lines(to_text({{FindingLevel::Note, "topic", words, words}}, false));
    int num_lines = 0;
    for (std::string line; std::getline(lines, line); ++num_lines) EXPECT_LE(line.size(), 80U) << line;
    EXPECT_GT(num_lines, 20) << "1800 characters";
}

TEST(Findings, TheFirstProblemIsTheCode) {
    EXPECT_EQ(exit_code_of(kFindings), 73);
    EXPECT_EQ(exit_code_of({}), 0);
    EXPECT_EQ(summary_of({}), "no problems, no notes");
    EXPECT_EQ(exit_code_of({kFindings[0], kFindings[1]}), 0);
}

TEST(Findings, Json) {
    const auto json = nlohmann::json::parse(to_json_text(kFindings));
    EXPECT_EQ(json.at("exit_code"), 73);
    EXPECT_EQ(json.at("findings").size(), 4U);
    EXPECT_EQ(json.at("findings")[2].at("level"), "problem");
    EXPECT_EQ(json.at("findings")[2].at("code"), 73);
    EXPECT_EQ(json.at("findings")[1].at("remedy"), "vpp run does it; or mpirun --oversubscribe");
}

}  // namespace
}  // namespace vpp
