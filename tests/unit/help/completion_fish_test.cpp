#include <gtest/gtest.h>

#include "help/completion.hpp"
#include "unit/help/command_tree.hpp"

namespace vpp {
namespace {

std::string fish_script() {
    return fish_completion(test::small_program(), test::kSmallSettings, test::kSmallKeys);
}

bool fish_holds(const std::string& part) {
    return fish_script().find(part) != std::string::npos;
}

TEST(CompletionFish, SaysWhatFollowsEachCommandAndOption) {
    EXPECT_TRUE(
        fish_holds("set -g __vpp_commands \\\n    'vpp train' \\\n    'vpp schedule' \\\n    'vpp schedule check'"));
    EXPECT_TRUE(fish_holds("complete -c vpp -f\n"));
    EXPECT_TRUE(fish_holds("complete -c vpp -n '__vpp_at \"vpp\"' -a train -d 'train; start it with mpirun'\n"));
    EXPECT_TRUE(fish_holds("complete -c vpp -n '__vpp_at \"vpp train\"' -l config -x -a '(__vpp_plans)' -d"));
    EXPECT_TRUE(fish_holds("-s l -l log-level -x -a 'debug info' -d 'what goes to the log, \\'info\\' or other'\n"));
    EXPECT_TRUE(fish_holds("complete -c vpp -n '__vpp_at \"vpp schedule check\"' -F\n"));
    EXPECT_TRUE(fish_holds("complete -c vpp -n '__vpp_at \"vpp train\"' -a '(__vpp_plans)'\n"));
    EXPECT_TRUE(fish_holds("complete -c vpp -n '__vpp_at \"vpp schedule check\"' -l json -d 'the result as JSON'\n"));
    EXPECT_TRUE(fish_holds("        case 'optimizer.group[0].nesterov'\n            printf '%s\\n' true false\n"));
    EXPECT_TRUE(fish_holds("        'train.steps' 'Optimizer updates.'"));
}

TEST(CompletionFish, WhatACommandStartsIsCompletedBehindIt) {
    const std::string script = fish_completion(test::program_with_run(), test::kSmallSettings, test::kSmallKeys);
    for (const char* part : {"    'vpp run' \\\n    'vpp run train'\n", "'__vpp_at \"vpp run\"' -a train -d",
                             "'__vpp_at \"vpp run\"' -a '(__vpp_plans)'\n", "'__vpp_at \"vpp run\"' -l set -x -a",
                             "'__vpp_at \"vpp run train\"' -l print -d"}) {
        EXPECT_NE(script.find(part), std::string::npos) << part;
    }
}

}  // namespace
}  // namespace vpp
