// The cuts of the evaluation graph follow the owners of the weights in training.
#include "program/evaluation_split.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "unit/graph/graphs.hpp"

namespace vpp {
namespace {

using test::GraphMaker;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Ops by what they use: a parameter "a", "b", ... (upper case: a written buffer), or "-" for none.
Graph graph_of(const std::string& uses, const std::string& parameters = "abcd", std::vector<int64_t> sizes = {}) {
    GraphMaker maker;
    int x = maker.input("x");
    std::vector<int> values;
    for (char name : parameters) values.push_back(maker.parameter({name}, 4));
    for (size_t i = 0; i < uses.size(); ++i) {
        std::vector<int> inputs{x};
        const size_t parameter = parameters.find(uses[i]);
        if (parameter != std::string::npos) inputs.push_back(values[parameter]);
        x = maker.op("", inputs, 1, sizes.empty() ? 8 : sizes[i]);
    }
    return maker.finish();
}

/// Every parameter is used in the stage that owns it in training.
void expect_same_owners(const Graph& evaluation, const std::vector<int>& cuts, const Graph& training,
                        const Split& training_split) {
    const Split split = make_stages(evaluation, cuts);
    ASSERT_EQ(split.num_stages(), training_split.num_stages());
    for (size_t p = 0; p < training.parameters.size(); ++p) {
        if (evaluation.parameters[p].uses.empty() || training.parameters[p].uses.empty()) continue;
        EXPECT_EQ(split.stage_of_op(evaluation.parameters[p].uses.front()),
                  training_split.stage_of_op(training.parameters[p].uses.front()))
            << training.parameters[p].name;
    }
}

TEST(EvaluationSplit, OpsThatAreMissingInEvaluationMoveTheCuts) {
    const Graph training = graph_of("a-b--c-d"), evaluation = graph_of("abcd");
    for (const std::vector<int>& cuts : {std::vector<int>{1}, {2}, {4}, {2, 5}, {1, 3, 6}}) {
        const Split split = make_stages(training, cuts);
        expect_same_owners(evaluation, match_split(evaluation, training, split), training, split);
    }
    EXPECT_THAT(match_split(evaluation, training, make_stages(training, {2, 5})), ElementsAre(1, 2));
}

TEST(EvaluationSplit, TheFewestBytesThenTheEarliestAmongWhatFits) {
    const Graph training = graph_of("a---b", "ab");
    const Split split = make_stages(training, {4});
    EXPECT_THAT(match_split(graph_of("a---b", "ab"), training, split), ElementsAre(1));
    EXPECT_THAT(match_split(graph_of("a---b", "ab", {8, 8, 2, 8, 8}), training, split), ElementsAre(3));
}

TEST(EvaluationSplit, IllegalCutsAreAvoided) {
    const Graph training = graph_of("a---b", "ab");
    Graph evaluation = training;
    evaluation.cuts[1] = {false, "why"};
    EXPECT_THAT(match_split(evaluation, training, make_stages(training, {1})), ElementsAre(2));
    for (int cut = 1; cut < 5; ++cut) evaluation.cuts[static_cast<size_t>(cut)] = {false, "why"};
    try {
        match_split(evaluation, training, make_stages(training, {1}));
        FAIL() << "nothing was thrown";
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::Plan);
        EXPECT_THAT(error.what(),
                    HasSubstr("stage 1 cannot be matched in evaluation mode: no legal cut leaves its parameters in one "
                              "stage; choose other cuts, or leave out data.val"));
        EXPECT_THAT(error.what(), HasSubstr("leave out data.val"));
    }
}

TEST(EvaluationSplit, AStageWithoutParametersStillGetsOps) {
    // The cheapest cut before stage 1 is the last one that fits; it must be left to stage 2.
    const Graph training = graph_of("a---b", "ab", {8, 8, 8, 2, 8});
    const Split split = make_stages(training, {2, 4});
    const std::vector<int> cuts = match_split(training, training, split);
    ASSERT_EQ(cuts.size(), 2U);
    expect_same_owners(training, cuts, training, split);
    EXPECT_EQ(cuts[1], 4);
    // With too few ops between the two it is an error, not an empty stage.
    EXPECT_THROW(match_split(graph_of("ab", "ab"), training, split), Error);
}

TEST(EvaluationSplit, WhatNeverChangesBindsNoStage) {
    GraphMaker maker;
    const int x = maker.input("x"), table = maker.parameter("table", 4, false, true), w = maker.parameter("w", 4);
    const int a = maker.op("", {x, table});
    const int b = maker.op("", {a, w});
    maker.op("", {b, table});
    const Graph graph = maker.finish();
    EXPECT_THAT(match_split(graph, graph, make_stages(graph, {2})), ElementsAre(2));
    EXPECT_THAT(match_split(graph, graph, make_stages(graph, {1})), ElementsAre(1));
}

TEST(EvaluationSplit, ATiedParameterIsUsedWhereTrainingHasItsCopies) {
    const Graph training = graph_of("a-b--c-a"), evaluation = graph_of("abca");
    for (const std::vector<int>& cuts : {std::vector<int>{1}, {6}, {2, 5}, {2, 5, 7}}) {
        const Split split = make_stages(training, cuts);
        const Split matched = make_stages(evaluation, match_split(evaluation, training, split));
        expect_same_owners(evaluation, matched.cuts, training, split);
        EXPECT_EQ(matched.stage_of_op(3), split.stage_of_op(7));
    }
    // Which use is left out cannot be known: all go to the owner.
    EXPECT_THROW(match_split(graph_of("abc"), training, make_stages(training, {2, 7})), Error);
}

TEST(EvaluationSplit, AnOpThatJoinsWhatTwoStagesTrainIsRefused) {
    const auto graph_with = [&](const std::vector<std::vector<int>>& ops) {
        GraphMaker made;
        int last = made.input("x");
        const int first = made.parameter("w", 4), second = made.parameter("b", 4);
        for (const std::vector<int>& uses : ops) {
            std::vector<int> inputs{last};
            for (int use : uses) inputs.push_back(use == 0 ? first : second);
            last = made.op("", inputs);
        }
        return made.finish();
    };
    const Graph training = graph_with({{0}, {1}, {}});  // W(x), then B(x)
    const Graph joined = graph_with({{}, {0, 1}, {}});  // (W + B)(x)
    const auto check_with = [&](const Graph& evaluation, const std::vector<int>& cuts) {
        const Split split = make_stages(training, cuts);
        check_weights_follow(evaluation, make_stages(evaluation, match_split(evaluation, training, split)), training,
                             split);
    };
    EXPECT_NO_THROW(check_with(training, {1}));
    EXPECT_NO_THROW(check_with(joined, {2}));
    try {
        check_with(joined, {1});
        FAIL() << "nothing was thrown";
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::Plan);
        EXPECT_THAT(error.what(), HasSubstr("in evaluation mode 'w' is used in stage 1, and in training in stage 0"));
    }
}

TEST(EvaluationSplit, AWrittenBufferStaysWithItsWriter) {
    GraphMaker maker;
    const int x = maker.input("x"), mean = maker.parameter("mean", 4, false, true);
    const int a = maker.op("", {x});
    maker.op("", {a, mean});
    Graph training = maker.finish();
    training.parameters[0].written = true;
    Graph evaluation = maker.finish();  // read only
    EXPECT_THAT(match_split(evaluation, training, make_stages(training, {1})), ElementsAre(1));
}

}  // namespace
}  // namespace vpp
