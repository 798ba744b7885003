#include "launch/shell.hpp"

#include <gtest/gtest.h>

#include "launch/child.hpp"

namespace vpp {
namespace {

TEST(Shell, PlainWordsStayPlain) {
    for (const char* word : {"mpirun", "-np", "4", "OMP_NUM_THREADS=1", "../a_b.toml", "run.dir=runs/x", "a:2,b:3"}) {
        EXPECT_EQ(shell_quoted(word), word);
    }
}

TEST(Shell, WhatAShellWouldChangeIsQuoted) {
    EXPECT_EQ(shell_quoted(""), "''");
    EXPECT_EQ(shell_quoted("a b"), "'a b'");
    EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
    EXPECT_EQ(shell_line({"vpp", "train", "my plan.toml"}), "vpp train 'my plan.toml'");
}

TEST(Shell, AShellReadsTheWordsBack) {
    const std::vector<std::string> words{"a b",         "$HOME", "`id`", "*",  "it's", "\"quoted\"",
                                         "back\\slash", "~",     "#",    "!!", "&|;",  "optimizer.betas=[0.9, 0.95]"};
    std::string expected;
    for (const std::string& word : words) expected += word + "\n";
    const ChildWords heard =
        listen_to({"sh", "-c", "printf '%s\\n' " + shell_line(words)}, std::chrono::milliseconds(10000));
    EXPECT_EQ(heard.text, expected);
}

}  // namespace
}  // namespace vpp
