#include "help/command_page.hpp"

#include <gtest/gtest.h>

#include "unit/help/command_tree.hpp"

namespace vpp {
namespace {

TEST(CommandPage, CommandsAreFoundByTheirWholeNames) {
    const CommandPage root = test::small_program();
    EXPECT_EQ(all_commands(root).size(), 5U);
    EXPECT_EQ(all_commands(root).front(), &root);
    ASSERT_NE(find_command(root, "vpp schedule check"), nullptr);
    EXPECT_EQ(find_command(root, "vpp schedule check")->sentence, "prove that files are sound");
    EXPECT_EQ(find_command(root, "vpp check"), nullptr);
    EXPECT_EQ(last_word("vpp schedule check"), "check");
    EXPECT_EQ(last_word("vpp"), "vpp");
}

TEST(CommandPage, UsageLines) {
    const CommandPage root = test::small_program();
    EXPECT_EQ(usage_line(root), "vpp [OPTIONS] COMMAND");
    EXPECT_EQ(usage_line(*find_command(root, "vpp train")), "vpp train [OPTIONS] PLAN");
    EXPECT_EQ(usage_line(*find_command(root, "vpp schedule check")), "vpp schedule check [OPTIONS] FILE...");
    EXPECT_EQ(usage_line(*find_command(root, "vpp explain")), "vpp explain [OPTIONS] [KEY]");
}

TEST(CommandPage, ThePlaceholderSaysWhatAShellOffers) {
    const auto kind = [](const char* placeholder) {
        OptionPage option;
        option.names = {"--x"};
        option.value = placeholder;
        return value_kind(option);
    };
    EXPECT_EQ(kind("PLAN"), ValueKind::Plan);
    EXPECT_EQ(kind("PLAN|DIR"), ValueKind::Plan);
    EXPECT_EQ(kind("FILE|DIR"), ValueKind::File);
    EXPECT_EQ(kind("CSV"), ValueKind::File);
    EXPECT_EQ(kind("OUT"), ValueKind::File);
    EXPECT_EQ(kind("DIR"), ValueKind::Folder);
    EXPECT_EQ(kind("KEY=VALUE"), ValueKind::Setting);
    EXPECT_EQ(kind("KEY"), ValueKind::Key);
    EXPECT_EQ(kind("PLANS"), ValueKind::Unknown) << "a whole word counts";
    OptionPage words;
    words.choices = {"a"};
    EXPECT_EQ(value_kind(words), ValueKind::Words);
}

TEST(CommandPage, ASentenceHasChoicesAndDefault) {
    const CommandPage root = test::small_program();
    EXPECT_EQ(full_sentence(root.commands[0].options[2]),
              "what goes to the log, 'info' or other: debug, info (default: info)");
    EXPECT_EQ(full_sentence(root.commands[0].options[3]), "how many");
}

}  // namespace
}  // namespace vpp
