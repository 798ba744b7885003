#include "engine/recompute_choice.hpp"

#include "unit/engine/support.hpp"

namespace vpp::test {
namespace {

RecomputePlan read(const std::string& text) {
    return recompute_from_text(text, {});
}

TEST(RecomputeChoice, EachKindInOneWord) {
    EXPECT_EQ(read("none").what, "none");
    EXPECT_EQ(read("stage").what, "stage");
    EXPECT_EQ(read("units").every, 1);
    EXPECT_EQ(read("units:3").what, "units");
    EXPECT_EQ(read("units:3").every, 3);
    EXPECT_EQ(read("modules:blocks.*:head").what, "modules");
    EXPECT_EQ(read("modules:blocks.*:head").modules, (std::vector<std::string>{"blocks.*", "head"}));
}

TEST(RecomputeChoice, TheLastMicrobatchMayBeLeftOut) {
    EXPECT_FALSE(read("stage").except_last);
    EXPECT_TRUE(read("stage:except_last").except_last);
    EXPECT_TRUE(read("units:2:except_last").except_last);
    EXPECT_EQ(read("units:2:except_last").every, 2);
    EXPECT_EQ(read("modules:head:except_last").modules, std::vector<std::string>{"head"});
}

TEST(RecomputeChoice, WhatItLeavesOpenIsThePlans) {
    RecomputePlan own;
    own.every = 4;
    own.modules = {"a"};
    own.except_last = true;
    EXPECT_EQ(recompute_from_text("units", own).every, 4);
    EXPECT_EQ(recompute_from_text("units:2", own).every, 2);
    EXPECT_EQ(recompute_from_text("modules", own).modules, std::vector<std::string>{"a"});
    EXPECT_EQ(recompute_from_text("modules:b", own).modules, std::vector<std::string>{"b"});
    EXPECT_TRUE(recompute_from_text("stage", own).modules.empty());
    EXPECT_FALSE(recompute_from_text("stage", own).except_last);
}

TEST(RecomputeChoice, EverythingElseIsRefused) {
    for (const char* text : {"", "all", "stage:2", "none:except_last", "units:0", "units:two", "units:2:3", "units:-1",
                             "units:99999999", "modules:", "modules:a::b", "stage:"}) {
        EXPECT_HAS(error_of(ErrorKind::CommandLine, [&] { read(text); }), "--recompute takes none, stage, units");
    }
    EXPECT_HAS(error_of(ErrorKind::CommandLine, [] { read("modules"); }), "try --recompute modules:GLOB");
}

}  // namespace
}  // namespace vpp::test
