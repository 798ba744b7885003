#include "graph/recompute.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "unit/graph/graphs.hpp"

namespace vpp {
namespace {

using test::GraphMaker;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// stem, five blocks of two ops each, head: ops 0, 1..10, 11.
Graph blocks_to_recompute(const std::vector<int>& forbidden = {}) {
    GraphMaker maker;
    int x = maker.op("stem", {maker.input("x")});
    std::vector<std::string> modules{"stem:Linear"};
    for (int i = 0; i < 5; ++i) {
        const std::string name = "blocks." + std::to_string(i);
        modules.push_back(name + ":Block");
        x = maker.op(name, {maker.op(name, {x})});
    }
    maker.op("head", {x});
    modules.push_back("head:Head");
    maker.modules(modules);
    for (int cut : forbidden) maker.forbid(cut, "for the test");
    return maker.finish();
}

RecomputePlan recompute(const std::string& what, int64_t every = 1) {
    RecomputePlan plan;
    plan.what = what;
    plan.every = every;
    return plan;
}

RecomputePlan listed(std::vector<std::string> modules) {
    RecomputePlan plan = recompute("modules");
    plan.modules = std::move(modules);
    return plan;
}

std::vector<std::pair<int, int>> ranges(const Graph& graph, const RecomputePlan& asked, const std::vector<int>& cuts) {
    Plan plan;
    plan.pipeline.recompute = asked;
    std::vector<std::pair<int, int>> found;
    for (const OpRange& range : find_recomputed(graph, plan, cuts)) found.emplace_back(range.begin, range.end);
    return found;
}

using Pairs = std::vector<std::pair<int, int>>;

TEST(Recompute, NothingUnlessAskedFor) {
    EXPECT_THAT(ranges(blocks_to_recompute(), {}, {5}), IsEmpty());
}

TEST(Recompute, WholeStages) {
    EXPECT_EQ(ranges(blocks_to_recompute(), recompute("stage"), {5}), (Pairs{{0, 5}, {5, 12}}));
    EXPECT_EQ(ranges(blocks_to_recompute(), recompute("stage"), {}), (Pairs{{0, 12}}));
}

TEST(Recompute, UnitsByTheNumber) {
    EXPECT_EQ(ranges(blocks_to_recompute(), recompute("units"), {5}), (Pairs{{1, 3}, {3, 5}, {5, 7}, {7, 9}, {9, 11}}));
    EXPECT_EQ(ranges(blocks_to_recompute(), recompute("units", 2), {5}), (Pairs{{1, 5}, {5, 9}, {9, 11}}));
    EXPECT_EQ(ranges(blocks_to_recompute(), recompute("units", 2), {7}), (Pairs{{1, 5}, {5, 7}, {7, 11}}))
        << "a stage begins a new segment";
    EXPECT_EQ(ranges(blocks_to_recompute(), recompute("units", 9), {}), (Pairs{{1, 11}}));
}

TEST(Recompute, ListedModules) {
    EXPECT_EQ(ranges(blocks_to_recompute(), listed({"blocks.1", "head"}), {5}), (Pairs{{3, 5}, {11, 12}}));
    EXPECT_EQ(ranges(blocks_to_recompute(), listed({"Block"}), {4}),
              (Pairs{{1, 3}, {3, 4}, {4, 5}, {5, 7}, {7, 9}, {9, 11}}))
        << "a unit over two stages is two segments";
}

// Borders move outwards until the model may be cut there; ranges that meet become one.
TEST(Recompute, BordersAreLegalCuts) {
    EXPECT_EQ(ranges(blocks_to_recompute({3}), listed({"blocks.1"}), {}), (Pairs{{2, 5}}));
    EXPECT_EQ(ranges(blocks_to_recompute({3, 2, 1}), listed({"blocks.1"}), {}), (Pairs{{0, 5}}));
    EXPECT_EQ(ranges(blocks_to_recompute({5}), recompute("units"), {}), (Pairs{{1, 3}, {3, 7}, {7, 9}, {9, 11}}));
    EXPECT_EQ(ranges(blocks_to_recompute({11}), recompute("units", 5), {}), (Pairs{{1, 12}}));
}

TEST(Recompute, NamesThatNameNothingAreAnswered) {
    try {
        ranges(blocks_to_recompute(), listed({"blocks.3", "haed"}), {});
        ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::Plan);
        EXPECT_THAT(error.what(), HasSubstr("names 'haed', but the model has no such submodule"));
        EXPECT_THAT(error.what(), HasSubstr("did you mean 'head'?"));
    }
    GraphMaker maker;
    maker.op("", {maker.input("x")});
    const Graph bare = maker.finish();
    EXPECT_THROW(ranges(bare, recompute("units"), {}), Error);
}

}  // namespace
}  // namespace vpp
