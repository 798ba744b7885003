#include "examples/plan_template.hpp"

#include "unit/data/support.hpp"

namespace vpp {
namespace {

using test::error_of;

TEST(PlanTemplate, PlacesAreFilledOnceAndValuesAreNotLookedAtAgain) {
    EXPECT_EQ(fill_in("a {{x}} b {{y}}{{x}}", {{"x", "{{y}}"}, {"y", "2"}}), "a {{y}} b 2{{y}}");
    EXPECT_EQ(fill_in("nothing", {}), "nothing");
}

TEST(PlanTemplate, WhatDoesNotFitIsABug) {
    error_of(ErrorKind::Bug, [] { fill_in("{{x}}", {}); });
    error_of(ErrorKind::Bug, [] { fill_in("no place", {{"x", "1"}}); });
    error_of(ErrorKind::Bug, [] { fill_in("{{x", {{"x", "1"}}); });
}

TEST(PlanTemplate, NamesOfFoldersCannotBreakThePlan) {
    const ExampleFile file = plan_file("dir = {{run_dir}}\n", {"a\"b\nc"});
    EXPECT_EQ(file.name, "plan.toml");
    EXPECT_EQ(file.contents, "dir = \"runs/a\\\"b\\u000Ac\"\n");
}

}  // namespace
}  // namespace vpp
