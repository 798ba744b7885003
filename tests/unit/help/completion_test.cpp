#include "help/completion.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "unit/help/command_tree.hpp"

namespace vpp {
namespace {

const Names kNames = {{"tokens"}, {"mse"}, {"FLOPS"}, {"1F1B", "GPIPE"}, {"adamw"}, {"constant"}, {"cpu"}, {"mpi"}};

const SettingPage* setting(const std::vector<SettingPage>& all, const std::string& name) {
    const auto found = std::ranges::find(all, name, &SettingPage::name);
    return found == all.end() ? nullptr : &*found;
}

TEST(Completion, SettingsAreTheKeysWithTheirWords) {
    const auto all = setting_pages(kNames);
    ASSERT_NE(setting(all, "pipeline.schedule_type"), nullptr);
    EXPECT_EQ(setting(all, "pipeline.schedule_type")->words, (std::vector<std::string>{"1F1B", "GPIPE"}));
    EXPECT_EQ(setting(all, "data.shuffle")->words, (std::vector<std::string>{"true", "false"}));
    EXPECT_EQ(setting(all, "pipeline.virtual_chunks")->words, (std::vector<std::string>{"auto"}));
    EXPECT_TRUE(setting(all, "train.steps")->words.empty());
    EXPECT_NE(setting(all, "optimizer.group[0].lr"), nullptr);
    EXPECT_EQ(setting(all, "optimizer.group.lr"), nullptr);
    EXPECT_EQ(setting(all, "optimizer.group"), nullptr);
}

TEST(Completion, ACommandThatStartsOthersHasThemBelowIt) {
    const CommandPage tree = with_started_commands(test::program_with_run());
    const CommandPage* run = find_command(tree, "vpp run");
    const CommandPage* started = find_command(tree, "vpp run train");
    ASSERT_NE(started, nullptr);
    EXPECT_EQ(usage_line(*started), "vpp run train [OPTIONS] PLAN");
    EXPECT_EQ(usage_line(*run), "vpp run [OPTIONS] PLAN COMMAND") << "one plan, though the started has it too";
    for (const CommandPage* command : {run, started}) {
        EXPECT_EQ(named_options(*command).size(), 6U) << "the help of both is one";
        for (const char* name : {"--print", "--set"}) {
            EXPECT_EQ(std::ranges::count(command->options, std::vector<std::string>{name}, &OptionPage::names), 1);
        }
    }
    EXPECT_EQ(named_options(*find_command(tree, "vpp train")).size(), 5U);
    EXPECT_TRUE(find_command(with_started_commands(test::small_program()), "vpp train")->commands.empty());
}

TEST(Completion, ExplainedNamesAreSectionsAndKeysOnce) {
    auto names = explained_names();
    for (const char* name : {"pipeline", "pipeline.stage", "train.steps", "train.accumulate", "optimizer.group.lr"}) {
        EXPECT_EQ(std::ranges::count(names, name), 1) << name;
    }
    std::ranges::sort(names);
    EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
}

}  // namespace
}  // namespace vpp
