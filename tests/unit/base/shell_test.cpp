#include "base/shell.hpp"

#include <gtest/gtest.h>

#include <cstdio>

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
    FILE* shell = ::popen(("printf '%s\\n' " + shell_line(words)).c_str(), "r");
    ASSERT_NE(shell, nullptr);
    std::string heard;
    for (int c = std::fgetc(shell); c != EOF; c = std::fgetc(shell)) heard += static_cast<char>(c);
    EXPECT_EQ(::pclose(shell), 0);
    EXPECT_EQ(heard, expected);
}

}  // namespace
}  // namespace vpp
