#include "examples/input_guess.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "examples/layers.hpp"
#include "unit/examples/made.hpp"

namespace vpp {
namespace {

using test::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

InputGuess guess_of(const std::string& signature, const std::string& body,
                    std::vector<std::pair<std::string, ScriptedModule>> children) {
    ScriptedModule model{"Model", "def forward(self, " + signature + "):\n    " + body + "\n"};
    model.children = std::move(children);
    return guess_inputs(InputTrial(test::archive_of(model)));
}

TEST(InputGuess, ALinearLayerSaysItsInputs) {
    const InputGuess guess = guess_of("x", "return self.a.forward(x)", {{"a", linear(12, 3)}});
    ASSERT_TRUE(guess.forward);
    EXPECT_THAT(guess.inputs.at(0).field.shape, ElementsAre(12));
    EXPECT_EQ(guess.inputs[0].reason, "a linear layer takes it");
    EXPECT_EQ(guess.samples, 2);
}

TEST(InputGuess, ASequenceIsTriedWhereARowDoesNotDo) {
    const InputGuess guess = guess_of(
        "x", "return torch.mean(self.a.forward(x), [1]) + torch.sum(x, [1, 2]).unsqueeze(1)", {{"a", linear(12, 3)}});
    ASSERT_TRUE(guess.forward) << guess.problem;
    EXPECT_THAT(guess.inputs.at(0).field.shape, ElementsAre(16, 12));
}

TEST(InputGuess, TheSideOfAnImageIsFoundByTrying) {
    const InputGuess guess = guess_of(
        "image", "return self.head.forward(torch.flatten(torch.max_pool2d(self.conv.forward(image), [2, 2]), 1))",
        {{"conv", conv3x3(3, 4)}, {"head", linear(4 * 14 * 14, 10)}});
    ASSERT_TRUE(guess.forward) << guess.problem;
    EXPECT_THAT(guess.inputs.at(0).field.shape, ElementsAre(3, 28, 28));
}

TEST(InputGuess, SizesThatTheModelNamesAreTried) {
    const InputGuess masked = guess_of(
        "x", "return torch.matmul(torch.ones([12, 12]) + torch.matmul(x, x.transpose(1, 2)), self.a.forward(x))",
        {{"a", linear(8, 3)}});
    ASSERT_TRUE(masked.forward) << masked.problem;
    EXPECT_THAT(masked.inputs.at(0).field.shape, ElementsAre(12, 8));
    const InputGuess picture = guess_of(
        "image", "return self.head.forward(torch.flatten(torch.max_pool2d(self.conv.forward(image), [4, 4]), 1))",
        {{"conv", conv3x3(3, 4)}, {"head", linear(4 * 12 * 12, 10)}});
    ASSERT_TRUE(picture.forward) << picture.problem;
    EXPECT_THAT(picture.inputs.at(0).field.shape, ElementsAre(3, 48, 48));
}

TEST(InputGuess, TargetsOfPixelsHaveTheSidesOfTheImage) {
    const InputGuess guess =
        guess_of("y, image", "return torch.cross_entropy_loss(self.conv.forward(image), y, None, 1, -100, 0.0)",
                 {{"conv", conv3x3(3, 4)}});
    ASSERT_TRUE(guess.forward) << guess.problem;
    EXPECT_THAT(guess.inputs.at(0).field.shape, ElementsAre(32, 32));
    EXPECT_EQ(guess.inputs[0].field.bound, 4);
    EXPECT_THAT(guess.inputs.at(1).field.shape, ElementsAre(3, 32, 32));
    const InputGuess numbers =
        guess_of("image, y", "return torch.binary_cross_entropy_with_logits(self.conv.forward(image), y)",
                 {{"conv", conv3x3(3, 1)}});
    ASSERT_TRUE(numbers.forward) << numbers.problem;
    EXPECT_THAT(numbers.inputs.at(1).field.shape, ElementsAre(1, 32, 32));
}

TEST(InputGuess, VolumesStaySmall) {
    const ForwardArgument volume{.name = "x", .use = InputUse::Convolution, .weight = {4, 1, 3, 3, 3}};
    for (const Field& field : likely_fields(volume)) {
        ASSERT_EQ(field.shape.size(), 4U);
        EXPECT_LE(field.shape[1], 64);
    }
}

TEST(InputGuess, SoundsAreLongAndMayComeWithoutAChannel) {
    const ScriptedModule wide{"Conv1d",
                              "def forward(self, x):\n    return torch.conv1d(x, self.weight, None, [5])\n",
                              {{"weight", {2, 1, 400}}}};
    const InputGuess guess = guess_of("sound", "return self.c.forward(sound.unsqueeze(1))", {{"c", wide}});
    ASSERT_TRUE(guess.forward) << guess.problem;
    EXPECT_THAT(guess.inputs.at(0).field.shape, ElementsAre(1024));
}

TEST(InputGuess, AMaskHasTheShapeOfTheTokens) {
    const InputGuess guess =
        guess_of("mask, tokens", "return self.e.forward(tokens) * mask.unsqueeze(-1)", {{"e", embedding(50, 8, 1)}});
    ASSERT_TRUE(guess.forward) << guess.problem;
    const Field& mask = guess.inputs.at(0).field;
    EXPECT_THAT(mask.shape, ElementsAre(16));
    EXPECT_EQ(mask.dtype, DType::I64);
    EXPECT_EQ(mask.bound, 2);
    const InputGuess numbers =
        guess_of("tokens, noise", "return torch.matmul(self.e.forward(tokens).transpose(1, 2), noise.unsqueeze(-1))",
                 {{"e", embedding(50, 8, 1)}});
    ASSERT_TRUE(numbers.forward) << numbers.problem;
    EXPECT_THAT(numbers.inputs.at(1).field.shape, ElementsAre(16));
    EXPECT_EQ(numbers.inputs[1].field.dtype, DType::F32);
}

TEST(InputGuess, SamplesStandAlongTheFirstDimensionAlone) {
    const InputGuess guess = guess_of("x, w", "return self.a.forward(x) * w.unsqueeze(1)", {{"a", linear(12, 1)}});
    ASSERT_TRUE(guess.forward) << guess.problem;
    EXPECT_THAT(guess.inputs.at(1).field.shape, ElementsAre()) << "a row would give [n, n, 8]";
    EXPECT_THAT(guess.forward->outputs.at(0).shape, ElementsAre(2, 1));
    const InputGuess tokens =
        guess_of("x, w", "return torch.mean(self.e.forward(x), [1]) * w.unsqueeze(1)", {{"e", embedding(50, 1, 1)}});
    ASSERT_TRUE(tokens.forward) << tokens.problem;
    EXPECT_THAT(tokens.inputs.at(1).field.shape, ElementsAre());
    const InputGuess pairs = guess_of("x", "return torch.matmul(self.a.forward(x), self.a.forward(x).transpose(0, 1))",
                                      {{"a", linear(12, 5)}});
    ASSERT_TRUE(pairs.forward) << "where nothing else fits";
    EXPECT_THAT(pairs.forward->outputs.at(0).shape, ElementsAre(2, 2));
}

TEST(InputGuess, WhatFailsOnNumbersIsNotTakenWhereSomethingElseFits) {
    const InputGuess guess = guess_of("x", "return torch.index_select(x, 1, torch.arange(15, 16))", {});
    ASSERT_TRUE(guess.forward) << guess.problem;
    EXPECT_THAT(guess.inputs.at(0).field.shape, ElementsAre(16, 8));
    const InputGuess none = guess_of("x", "return torch.index_select(x, 1, torch.arange(35, 36))", {});
    ASSERT_TRUE(none.forward) << none.problem;
    EXPECT_THAT(none.inputs.at(0).field.shape, ElementsAre(8)) << "the first that fits but for numbers";
    EXPECT_THAT(none.forward->problem, HasSubstr("index_select"));
}

TEST(InputGuess, LengthsOfSequencesAreWithinThem) {
    const InputGuess guess = guess_of("tokens, n",
                                      "return torch._pack_padded_sequence(self.e.forward(tokens), "
                                      "torch.sort(n + 1, 0, True)[0], True)[0]",
                                      {{"e", embedding(50, 8, 1)}});
    ASSERT_TRUE(guess.forward) << guess.problem;
    EXPECT_EQ(guess.forward->problem, "");
    const Field& lengths = guess.inputs.at(1).field;
    EXPECT_THAT(lengths.shape, ElementsAre());
    EXPECT_EQ(lengths.dtype, DType::I64);
    EXPECT_EQ(lengths.bound, 16);
    EXPECT_EQ(guess.inputs[1].reason, "lengths of sequences, of which none may be 0");
}

TEST(InputGuess, MasksAreTrueOrFalseForEachTokenOrPixel) {
    const InputGuess tokens =
        guess_of("mask, tokens", "return torch.where(torch.unsqueeze(mask, -1), self.e.forward(tokens), 0.0)",
                 {{"e", embedding(50, 8, 1)}});
    ASSERT_TRUE(tokens.forward) << tokens.problem;
    EXPECT_EQ(tokens.forward->problem, "");
    EXPECT_EQ(tokens.inputs.at(0).field.dtype, DType::Bool);
    EXPECT_THAT(tokens.inputs[0].field.shape, ElementsAre(16));
    EXPECT_EQ(tokens.inputs[0].reason, "it says which elements are taken");
    const InputGuess numbers = guess_of("x, mask",
                                        "return torch.masked_fill(self.a.forward(x), torch.eq(1 - mask, 1), 0.0) + "
                                        "torch.masked_fill(x, mask.to(11), 0.0).sum()",
                                        {{"a", linear(8, 8)}});
    ASSERT_TRUE(numbers.forward) << numbers.problem;
    EXPECT_EQ(numbers.forward->problem, "");
    EXPECT_EQ(numbers.inputs.at(1).field.dtype, DType::I64) << "a bool cannot be taken from 1";
    EXPECT_EQ(numbers.inputs[1].field.bound, 2);
}

TEST(InputGuess, TryingEnds) {
    ScriptedModule model{"Model",
                         "def forward(self, x):\n    return self.a.forward(x.reshape([-1, 7, 11]).mean([1]))\n"};
    model.children = {{"a", linear(11, 3)}};
    const InputGuess guess = guess_inputs(InputTrial(test::archive_of(model)), std::chrono::seconds(0));
    EXPECT_FALSE(guess.forward);
    EXPECT_THAT(guess.problem, HasSubstr("; gave up after 0 s of trying"));
}

TEST(InputGuess, TokensAndTargetsHaveOneLength) {
    const InputGuess guess =
        guess_of("tokens, targets",
                 "return torch.cross_entropy_loss(torch.flatten(self.head.forward(self.e.forward(tokens)), 0, 1), "
                 "torch.flatten(targets), None, 1, -100, 0.0)",
                 {{"e", embedding(50, 8, 1)}, {"head", linear(8, 40)}});
    ASSERT_TRUE(guess.forward) << guess.problem;
    const Field& tokens = guess.inputs.at(0).field;
    const Field& targets = guess.inputs.at(1).field;
    EXPECT_THAT(tokens.shape, ElementsAre(16));
    EXPECT_THAT(targets.shape, ElementsAre(16));
    EXPECT_EQ(tokens.dtype, DType::I64);
    EXPECT_EQ(tokens.bound, 50);
    EXPECT_EQ(targets.bound, 40);
}

TEST(InputGuess, AModelOfOneBatchSizeIsTakenAsItIs) {
    const InputGuess guess = guess_of("x", "return self.a.forward(x.view([4, 12]))", {{"a", linear(12, 3)}});
    ASSERT_TRUE(guess.forward) << guess.problem;
    EXPECT_EQ(guess.samples, 4);
}

TEST(InputGuess, WhatFitsNothingIsSaid) {
    const InputGuess guess =
        guess_of("x", "return self.a.forward(x.reshape([-1, 7, 11]).mean([1]))", {{"a", linear(11, 3)}});
    EXPECT_FALSE(guess.forward);
    EXPECT_THAT(guess.problem, HasSubstr("fails"));
    EXPECT_THAT(guess.inputs.at(0).field.shape, ElementsAre(11)) << "the likeliest";
}

TEST(InputGuess, ArgumentsThatNoFieldCanBeAreRefused) {
    EXPECT_HAS(error_of(ErrorKind::BadData,
                        [] {
                            guess_of("x, n: int", "return self.a.forward(x) * n", {{"a", linear(2, 2)}});
                        }),
               "forward's argument 'n' is of type int and has no default, but data fields are tensors; give it a "
               "default");
    EXPECT_HAS(error_of(ErrorKind::BadData,
                        [] {
                            guess_of("x: List[Tensor]", "return self.a.forward(x[0])", {{"a", linear(2, 2)}});
                        }),
               "forward's argument 'x' is of type List[Tensor] and has no default");
    EXPECT_HAS(error_of(ErrorKind::BadData,
                        [] {
                            guess_of("scale: float=2.0", "return self.a.forward(torch.ones([2, 2])) * scale",
                                     {{"a", linear(2, 2)}});
                        }),
               "forward has no argument that a data field could be; give it one without a default");
    EXPECT_EQ(guess_of("x, n: int=2", "return self.a.forward(x) * n", {{"a", linear(2, 2)}}).inputs.size(), 1U);
}

}  // namespace
}  // namespace vpp
