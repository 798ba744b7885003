#include <gtest/gtest.h>

#include "help/completion.hpp"
#include "unit/help/command_tree.hpp"

namespace vpp {
namespace {

std::string zsh_script() {
    return zsh_completion(test::small_program(), test::kSmallSettings, test::kSmallKeys);
}

bool zsh_holds(const std::string& part) {
    return zsh_script().find(part) != std::string::npos;
}

TEST(CompletionZsh, SaysWhatFollowsEachCommandAndOption) {
    EXPECT_TRUE(zsh_script().starts_with("#compdef vpp\n"));
    EXPECT_TRUE(zsh_holds("    '--config=[the plan \\[TOML\\]]:PLAN:_files -g \"*.toml\"'"));
    EXPECT_TRUE(zsh_holds("    '*--set=[override a key of the plan]:KEY=VALUE:_vpp_settings'"));
    EXPECT_TRUE(
        zsh_holds("    '(-l --log-level)-l+[what goes to the log, '\\''info'\\'' or other]:LEVEL:(debug info)'"));
    EXPECT_TRUE(zsh_holds("    '--steps=[how many]:N: '"));
    EXPECT_TRUE(zsh_holds("    '(- *)--help[print this help]'"));
    EXPECT_TRUE(zsh_holds("    '::PLAN:_files -g \"*.toml\"'")) << "--config may stand for it";
    EXPECT_TRUE(zsh_holds("    '*:FILE:_files'"));
    EXPECT_TRUE(zsh_holds("        check) _vpp_schedule_check && ret=0 ;;\n"));
    EXPECT_TRUE(zsh_holds("        'schedule:look at schedules'\n"));
    EXPECT_TRUE(zsh_holds("      optimizer.group\\[0\\].nesterov) compadd -- true false ;;\n"));
    EXPECT_TRUE(zsh_holds("    'train.steps:Optimizer updates.'\n"));
}

TEST(CompletionZsh, WhatACommandStartsIsCompletedBehindIt) {
    const std::string script = zsh_completion(test::program_with_run(), test::kSmallSettings, test::kSmallKeys);
    for (const char* part :
         {"        train) _vpp_run_train && ret=0 ;;\n        *) _vpp_run_train && ret=0 ;;\n",
          "commands && ret=0\n      _files -g \"*.toml\" && ret=0\n      ;;\n", "_vpp_run_train() {\n"}) {
        EXPECT_NE(script.find(part), std::string::npos) << part;
    }
}

}  // namespace
}  // namespace vpp
