#include "plan/explain.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "base/wrapped_text.hpp"
#include "unit/plan/plan_texts.hpp"

namespace vpp {
namespace {

using test::built_names;
using test::error_of;
using test::holds;

std::string page(const std::string& question) {
    return explain(question, built_names());
}

size_t longest_line(const std::string& text) {
    std::istringstream lines(text);
    size_t longest = 0;
    for (std::string line; std::getline(lines, line);) longest = std::max(longest, line.size());
    return longest;
}

TEST(Explain, AKeyWithAllOfItsFacts) {
    EXPECT_EQ(page("pipeline.schedule_type"),
              "pipeline.schedule_type\n"
              "  The order of each rank's actions.\n"
              "\n"
              "  type      word\n"
              "  default   \"1F1B\"\n"
              "  words     GPIPE, 1F1B, EAGER_1F1B, INTERLEAVED_1F1B, LOOPED_BFS,\n"
              "            ZERO_BUBBLE_H1, ZERO_BUBBLE_H2, ZERO_BUBBLE_GREEDY,\n"
              "            INTERLEAVED_ZERO_BUBBLE, ZERO_BUBBLE_V, V_HALF, V_MIN, V_ADAPTIVE,\n"
              "            DUALPIPE_V, CUSTOM, AUTO\n"
              "  also      SIMPLE_1F1B = 1F1B, ZERO_BUBBLE = ZERO_BUBBLE_V\n"
              "\n"
              "    [pipeline]\n"
              "    schedule_type = \"INTERLEAVED_1F1B\"\n");
}

TEST(Explain, ASectionWithItsKeys) {
    EXPECT_EQ(page("pipeline.search"),
              "[pipeline.search]\n"
              "  The search for a schedule with schedule_type = \"AUTO\".\n"
              "\n"
              "  moves = 20000000             AUTO: moves after which the search ends.\n"
              "  seed = 0                     AUTO: seed of the search.\n"
              "  objective = \"makespan\"       AUTO: what is made short.\n");
    EXPECT_TRUE(holds(page("pipeline"), "[pipeline.recompute]"));
    EXPECT_TRUE(holds(page("eval"), "metrics = []                 Shown beside the loss"));
}

TEST(Explain, WhatStandsAroundANameIsNoMatter) {
    for (const char* question : {"[pipeline.search]", " pipeline.search "}) {
        EXPECT_EQ(page(question), page("pipeline.search")) << question;
    }
    for (const char* question : {"optimizer.group[0].lr", "[[optimizer.group]].lr", "optimizer.group.lr=3e-4"}) {
        EXPECT_EQ(page(question), page("optimizer.group.lr")) << question;
    }
    EXPECT_EQ(page("num_stages"), page("pipeline.num_stages"));
    EXPECT_EQ(page("lr"), page("optimizer.lr") + '\n' + page("optimizer.group.lr"));
}

TEST(Explain, EveryPageFitsTheScreen) {
    EXPECT_LE(longest_line(explain_sections()), kScreenColumns);
    for (const auto& [section, sentence] : all_sections()) {
        EXPECT_LE(longest_line(page(section)), kScreenColumns) << section;
        EXPECT_TRUE(holds(explain_sections(), section));
    }
    for (const Key& key : all_keys()) EXPECT_LE(longest_line(page(key.name)), kScreenColumns) << key.name;
    EXPECT_GT(longest_line(std::string(81, 'x')), kScreenColumns) << "the measure itself";
}

TEST(Explain, AnUnknownKeyIsACommandLineError) {
    const Error error = error_of([] { page("pipeline.num_stage"); });
    EXPECT_EQ(error.kind(), ErrorKind::CommandLine);
    EXPECT_STREQ(error.what(), "a plan has no key 'pipeline.num_stage'; did you mean 'pipeline.num_stages'?");
    EXPECT_EQ(error_of([] { page("\x1b[2J"); }).kind(), ErrorKind::CommandLine);
    EXPECT_EQ(error_of([] { page(""); }).kind(), ErrorKind::CommandLine);
    EXPECT_EQ(error_of([] { page("[["); }).kind(), ErrorKind::CommandLine);
}

}  // namespace
}  // namespace vpp
