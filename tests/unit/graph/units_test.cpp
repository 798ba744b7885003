// Units: which ops are never cut apart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "graph/split.hpp"
#include "unit/graph/graphs.hpp"

namespace vpp {
namespace {

using test::GraphMaker;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// stem, blocks.0 (two ops), blocks.1, blocks.10, head.
Graph block_model() {
    GraphMaker maker;
    int x = maker.input("x");
    for (const char* module : {"stem", "blocks.0.fc", "blocks.0.act", "blocks.1.fc", "blocks.10.fc", "head"}) {
        x = maker.op(module, {x});
    }
    maker.modules({"stem:Linear", "blocks:ModuleList", "blocks.0:Block", "blocks.0.fc:Linear", "blocks.0.act:GELU",
                   "blocks.1:Block", "blocks.1.fc:Linear", "blocks.10:Block", "blocks.10.fc:Linear", "head:Norm"});
    return maker.finish();
}

TEST(Units, WithoutAListTheyAreSiblingsOfOneClass) {
    const Units units = find_units(block_model(), {});
    EXPECT_THAT(units.names, ElementsAre("blocks.0", "blocks.1", "blocks.10"));
    EXPECT_THAT(units.unit_of, ElementsAre(-1, 0, 0, 1, 2, -1));
}

TEST(Units, ListedByNameGlobOrClass) {
    EXPECT_THAT(find_units(block_model(), {"blocks.1"}).unit_of, ElementsAre(-1, -1, -1, 0, -1, -1))
        << "blocks.10 is another one";
    EXPECT_THAT(find_units(block_model(), {"blocks.*"}).names, ElementsAre("blocks.0", "blocks.1", "blocks.10"));
    EXPECT_THAT(find_units(block_model(), {"Block"}).names, ElementsAre("blocks.0", "blocks.1", "blocks.10"));
    EXPECT_THAT(find_units(block_model(), {"Linear"}).names,
                ElementsAre("stem", "blocks.0.fc", "blocks.1.fc", "blocks.10.fc"));
    EXPECT_THAT(find_units(block_model(), {"nothing"}).names, IsEmpty());
}

TEST(Units, WhatNamesNothingIsRefusedWithTheNearest) {
    const Plan plan;
    const auto check = [&](const std::vector<std::string>& listed) {
        check_units(block_model(), plan, "pipeline.recompute.modules", listed);
    };
    EXPECT_NO_THROW(check({"Block", "blocks.?", "head"}));
    for (const auto& [name, nearest] : {std::pair{"Blok", "Block"}, {"blocks.2", "blocks.0"}, {"haed", "head"}}) {
        try {
            check({"Block", name});
            ADD_FAILURE() << name << " is no name";
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), ErrorKind::Plan);
            EXPECT_THAT(error.what(), HasSubstr("names '" + std::string(name) + "', but the model has no such"));
            EXPECT_THAT(error.what(), HasSubstr(nearest));
        }
    }
    EXPECT_THROW(check({""}), Error);
}

TEST(Units, TheOutermostOfNestedOnesHolds) {
    const Units units = find_units(block_model(), {"Block", "Linear"});
    EXPECT_THAT(units.names, ElementsAre("stem", "blocks.0", "blocks.1", "blocks.10"));
}

TEST(Units, ASubmoduleWithoutOpsIsNone) {
    GraphMaker maker;
    const int x = maker.input("x");
    maker.op("a", {maker.op("a", {x})});
    maker.modules({"a:Linear", "b:Linear"});
    EXPECT_THAT(find_units(maker.finish(), {}).names, IsEmpty()) << "its only sibling computes nothing";
}

TEST(Units, ASubmoduleWithoutOpsMayBeNamed) {
    GraphMaker maker;
    maker.op("a", {maker.input("x")});
    maker.modules({":Model", "a:Linear", "skip:Identity"});
    const Graph graph = maker.finish();
    const Plan plan;
    for (const char* name : {"skip", "Identity", "sk*"}) {
        EXPECT_NO_THROW(check_units(graph, plan, "pipeline.smallest_unsplittable_units", {name})) << name;
    }
    EXPECT_THROW(check_units(graph, plan, "pipeline.smallest_unsplittable_units", {"Model"}), Error) << "the whole";
}

TEST(Units, AModuleThatRunsAgainLaterIsAnotherUnit) {
    GraphMaker maker;
    int x = maker.input("x");
    for (const char* module : {"a", "b", "a"}) x = maker.op(module, {x});
    maker.modules({"a:Linear", "b:Linear"});
    EXPECT_THAT(find_units(maker.finish(), {}).unit_of, ElementsAre(0, 1, 2));
}

}  // namespace
}  // namespace vpp
