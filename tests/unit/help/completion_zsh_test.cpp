#include <gtest/gtest.h>

#include "help/completion.hpp"
#include "unit/help/command_tree.hpp"

namespace vpp {
namespace {

std::string script() {
    return zsh_completion(test::small_program(), test::kSmallSettings, test::kSmallKeys);
}

bool holds(const std::string& part) {
    return script().find(part) != std::string::npos;
}

TEST(CompletionZsh, SaysWhatFollowsEachCommandAndOption) {
    EXPECT_TRUE(script().starts_with("#compdef vpp\n"));
    EXPECT_TRUE(holds("    '--config=[the plan \\[TOML\\]]:PLAN:_files -g \"*.toml\"'"));
    EXPECT_TRUE(holds("    '*--set=[override a key of the plan]:KEY=VALUE:_vpp_settings'"));
    EXPECT_TRUE(holds("    '(-l --log-level)-l+[what goes to the log, '\\''info'\\'' or other]:LEVEL:(debug info)'"));
    EXPECT_TRUE(holds("    '--steps=[how many]:N: '"));
    EXPECT_TRUE(holds("    '(- *)--help[print this help]'"));
    EXPECT_TRUE(holds("    '::PLAN:_files -g \"*.toml\"'")) << "--config may stand for it";
    EXPECT_TRUE(holds("    '*:FILE:_files'"));
    EXPECT_TRUE(holds("        check) _vpp_schedule_check && ret=0 ;;\n"));
    EXPECT_TRUE(holds("        'schedule:look at schedules'\n"));
    EXPECT_TRUE(holds("      optimizer.group\\[0\\].nesterov) compadd -- true false ;;\n"));
    EXPECT_TRUE(holds("    'train.steps:Optimizer updates.'\n"));
}

}  // namespace
}  // namespace vpp
