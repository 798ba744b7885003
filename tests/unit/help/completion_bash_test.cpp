#include <gtest/gtest.h>

#include "help/completion.hpp"
#include "unit/help/command_tree.hpp"

namespace vpp {
namespace {

std::string bash_script() {
    return bash_completion(test::small_program(), test::kSmallSettings, test::kSmallKeys);
}

bool bash_holds(const std::string& part) {
    return bash_script().find(part) != std::string::npos;
}

// What the functions do is tried in a real bash by tests/cli/shells_test.py.
TEST(CompletionBash, SaysWhatFollowsEachCommandAndOption) {
    EXPECT_TRUE(bash_holds("        'vpp') echo 'train schedule explain' ;;\n"));
    EXPECT_TRUE(bash_holds("        'vpp train') echo '--config --set -l --log-level --steps -h --help' ;;\n"));
    EXPECT_TRUE(bash_holds("        'vpp train --config') echo 'plans' ;;\n"));
    EXPECT_TRUE(
        bash_holds("        'vpp train -l' | \\\n        'vpp train --log-level') echo 'words debug info' ;;\n"));
    EXPECT_TRUE(bash_holds("        'vpp train --steps') echo 'any' ;;\n"));
    EXPECT_TRUE(bash_holds("        'vpp train 0') echo 'plans' ;;\n"));
    EXPECT_TRUE(bash_holds("        'vpp schedule check '*) echo 'files' ;;\n"));
    EXPECT_TRUE(bash_holds("        'optimizer.group[0].nesterov') echo 'true false' ;;\n"));
    EXPECT_TRUE(bash_holds("_vpp_keys() {\n    echo \\\n        'train' \\\n        'train.steps'\n}\n"));
    EXPECT_FALSE(bash_holds("'vpp schedule check --json')")) << "a flag takes no value";
    EXPECT_TRUE(bash_script().ends_with("complete -F _vpp vpp\n"));
}

TEST(CompletionBash, WhatACommandStartsIsCompletedBehindIt) {
    const std::string script = bash_completion(test::program_with_run(), test::kSmallSettings, test::kSmallKeys);
    for (const char* part :
         {"        'vpp run') echo 'train' ;;\n",
          "        'vpp run') echo '--print -h --help --config --set -l --log-level --steps' ;;\n",
          "        'vpp run train') echo '--config --set -l --log-level --steps -h --help --print' ;;\n",
          "        'vpp train 0' | \\\n        'vpp run 0' | \\\n        'vpp run train 0') echo 'plans' ;;\n"}) {
        EXPECT_NE(script.find(part), std::string::npos) << part;
    }
}

}  // namespace
}  // namespace vpp
