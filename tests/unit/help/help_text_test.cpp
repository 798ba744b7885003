#include "help/help_text.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "unit/help/command_tree.hpp"

namespace vpp {
namespace {

TEST(HelpText, ACommandWithArgumentAndOptions) {
    const CommandPage root = test::small_program();
    EXPECT_EQ(help_text(*find_command(root, "vpp train")),
              "vpp train: train; start it with mpirun\n"
              "\n"
              "Usage: vpp train [OPTIONS] PLAN\n"
              "\n"
              "Arguments:\n"
              "  PLAN  the plan [TOML]\n"
              "\n"
              "Options:\n"
              "  --config PLAN          the same as the argument PLAN\n"
              "  --set KEY=VALUE        override a key of the plan\n"
              "  -l, --log-level LEVEL  what goes to the log, 'info' or other: debug, info\n"
              "                         (default: info)\n"
              "  --steps N              how many\n"
              "  -h, --help             print this help\n"
              "\n"
              "Example:\n"
              "  mpirun -np 4 vpp train plan.toml\n");
}

TEST(HelpText, AGroupListsItsCommands) {
    EXPECT_EQ(help_text(test::small_program()),
              "vpp: trains models: the same bits\n"
              "\n"
              "Usage: vpp [OPTIONS] COMMAND\n"
              "\n"
              "Commands:\n"
              "  train     train; start it with mpirun\n"
              "  schedule  look at schedules\n"
              "  explain   say what a key means\n"
              "\n"
              "Options:\n"
              "  --version   print what it is built of\n"
              "  -h, --help  print this help\n"
              "\n"
              "Example:\n"
              "  vpp train plan.toml\n");
}

TEST(HelpText, LongSentencesAreWrappedToTheScreen) {
    CommandPage command = test::small_program().commands[0];
    for (int i = 0; i < 30; ++i) command.options[3].sentence += " and so on";
    command.options[3].names = {"--a-name-that-needs-a-line-of-its-own"};
    command.options[0].required = true;
    command.examples.push_back("vpp train other.toml");
    const std::string text = help_text(command);
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
    EXPECT_NE(text.find("  --a-name-that-needs-a-line-of-its-own N\n      "), std::string::npos);
    EXPECT_TRUE(text.ends_with("\nExamples:\n  mpirun -np 4 vpp train plan.toml\n  vpp train other.toml\n"));
}

TEST(HelpText, WhatIsNeededSaysSo) {
    const CommandPage root = test::small_program();
    const std::string text = help_text(*find_command(root, "vpp schedule check"));
    EXPECT_NE(text.find("  --out DIR   where to write (needed)\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace vpp
