#include "graph/input_trial.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/graph/models.hpp"

namespace vpp {
namespace {

using namespace test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

InputTrial trial_of(const ModuleSpec& spec) {
    return InputTrial(std::make_shared<const Archive>(save(spec)));
}

/// A model of one forward with a weight "w" and a vector "v".
ModuleSpec model_with_forward(const std::string& signature, const std::string& body,
                              const std::vector<int64_t>& weight_shape) {
    ModuleSpec spec{"Model", "def forward(self, " + signature + "):\n"};
    spec.code += body;
    spec.parameters = {{"w", weight(weight_shape)}, {"v", weight({weight_shape[0]}, 1)}};
    return spec;
}

ForwardArgument argument_of(const std::string& body, const std::vector<int64_t>& weight_shape) {
    return trial_of(model_with_forward("x", body, weight_shape)).arguments().at(0);
}

TEST(InputTrial, TheFirstTellingOpSaysWhatAnArgumentIs) {
    const ForwardArgument linear = argument_of("    return torch.linear(torch.relu(x), self.w)\n", {3, 5});
    EXPECT_EQ(linear.use, InputUse::Linear);
    EXPECT_THAT(linear.weight, ElementsAre(3, 5));
    const ForwardArgument image =
        argument_of("    return torch.conv2d(x, self.w, None, [1, 1], [1, 1], [1, 1], 2)\n", {6, 2, 3, 3});
    EXPECT_EQ(image.use, InputUse::Convolution);
    EXPECT_EQ(image.groups, 2);
    const ForwardArgument tokens = argument_of("    return torch.linear(torch.embedding(self.w, x), self.w)\n", {7, 7});
    EXPECT_EQ(tokens.use, InputUse::Indices);
    EXPECT_EQ(argument_of("    return torch.layer_norm(x, [4], self.w, self.v)\n", {4}).use, InputUse::Normalized);
    EXPECT_EQ(argument_of("    return torch._pack_padded_sequence(self.w, x + 1, True)[0]\n", {4, 4}).use,
              InputUse::Lengths);
    EXPECT_EQ(argument_of("    return torch.sin(x) + self.w\n", {4}).use, InputUse::Unknown);
    EXPECT_EQ(argument_of("    return torch.masked_fill(self.w, torch.unsqueeze(x, -1), 0.0)\n", {4}).use,
              InputUse::Mask);
    EXPECT_EQ(argument_of("    return torch.where(torch.logical_not(x), self.w, self.v)\n", {4}).use, InputUse::Mask);
    EXPECT_EQ(argument_of("    return torch.where(torch.gt(x, 0), self.w, self.v)\n", {4}).use, InputUse::Unknown)
        << "what is compared is no mask";
}

TEST(InputTrial, TargetsOfLosses) {
    const InputTrial classes = trial_of(model_with_forward(
        "x, y", "    return torch.cross_entropy_loss(torch.linear(x, self.w), torch.flatten(y), None, 1, -100, 0.0)\n",
        {3, 5}));
    EXPECT_EQ(classes.arguments().at(1).use, InputUse::Classes);
    const TriedForward tried = classes.run({floats("x", {5}), integers("y", {})}, 2);
    EXPECT_EQ(tried.num_classes, 3);
    ASSERT_EQ(tried.outputs.size(), 1U);
    EXPECT_TRUE(tried.outputs[0].shape.empty());
    const InputTrial letters = trial_of(
        model_with_forward("x, y",
                           "    scores = torch.transpose(torch.linear(x, self.w), 0, 1)\n"
                           "    return torch.ctc_loss(scores, y, torch.tensor([9, 9]), torch.tensor([4, 4]))\n",
                           {3, 5}));
    EXPECT_EQ(letters.arguments().at(1).use, InputUse::Classes);
    EXPECT_EQ(letters.run({floats("x", {9, 5}), {"y", DType::I64, {4}, 2}}, 2).num_classes, 3) << "the last dimension";
    const InputTrial picked = trial_of(model_with_forward(
        "x, y", "    return torch.mean(torch.gather(torch.linear(x, self.w), -1, torch.unsqueeze(y, 1)))\n", {3, 5}));
    EXPECT_EQ(picked.arguments().at(1).use, InputUse::Classes) << "a loss of the model's own";
    EXPECT_EQ(picked.run({floats("x", {5}), integers("y", {})}, 2).num_classes, 3);
    const InputTrial sorted = trial_of(
        model_with_forward("x, y, p",
                           "    h = torch.gather(torch.linear(x, self.w), 1, p)\n"
                           "    return torch.cross_entropy_loss(torch.cat([h, h], 1), y, None, 1, -100, 0.0)\n",
                           {3, 5}));
    EXPECT_EQ(sorted.arguments().at(1).use, InputUse::Classes);
    EXPECT_EQ(sorted.arguments().at(2).use, InputUse::Unknown) << "a gather before the loss picks something else";
    EXPECT_EQ(sorted.run({floats("x", {5}), integers("y", {}), integers("p", {2})}, 2).num_classes, 4);
    const InputTrial numbers =
        trial_of(model_with_forward("x, y", "    return torch.mse_loss(torch.linear(x, self.w), y)\n", {3, 5}));
    EXPECT_EQ(numbers.arguments().at(1).use, InputUse::Target);
    EXPECT_THAT(numbers.arguments().at(1).weight, ElementsAre(3, 5)) << "of the last layer before";
}

TEST(InputTrial, DefaultsAreBound) {
    const InputTrial trial = trial_of(model_with_forward("x, factor: float=2.0, mask: Optional[Tensor]=None",
                                                         "    h = torch.linear(x, self.w)\n"
                                                         "    if mask is not None:\n        h = h * mask\n"
                                                         "    return h * factor\n",
                                                         {3, 5}));
    ASSERT_EQ(trial.arguments().size(), 3U);
    EXPECT_EQ(trial.arguments()[1].type, "float");
    EXPECT_TRUE(trial.arguments()[1].has_default && trial.arguments()[2].has_default);
    EXPECT_FALSE(trial.arguments()[0].has_default);
    EXPECT_THAT(trial.run({floats("x", {5})}, 2).outputs.at(0).shape, ElementsAre(2, 3));
}

TEST(InputTrial, TargetsAreFedThoughTheyHaveADefault) {
    ModuleSpec spec = model_with_forward("x, labels: Optional[Tensor]=None, mask: Optional[Tensor]=None",
                                         "    h = torch.linear(x, self.w)\n"
                                         "    if labels is None:\n        loss = None\n"
                                         "    else:\n        loss = torch.mse_loss(h, labels)\n"
                                         "    return h, loss\n",
                                         {3, 5});
    const InputTrial trial = trial_of(spec);
    EXPECT_TRUE(trial.feeds_optional());
    EXPECT_FALSE(trial.arguments().at(1).has_default);
    EXPECT_EQ(trial.arguments()[1].use, InputUse::Target);
    EXPECT_TRUE(trial.arguments().at(2).has_default) << "a mask need not be there";
    const TriedForward tried = trial.run({floats("x", {5}), floats("labels", {3})}, 2);
    ASSERT_EQ(tried.outputs.size(), 2U);
    EXPECT_TRUE(tried.outputs[1].shape.empty());
    const InputTrial without(std::make_shared<const Archive>(save(spec)), /*feeds_targets=*/false);
    EXPECT_FALSE(without.feeds_optional());
    EXPECT_EQ(without.run({floats("x", {5})}, 2).outputs.size(), 1U);
}

TEST(InputTrial, NumbersAreOfTheTypeOfTheWeights) {
    ModuleSpec spec = model_with_forward("x", "    return torch.linear(x, self.w)\n", {3, 5});
    EXPECT_EQ(trial_of(spec).arguments().at(0).numbers, DType::F32);
    spec.parameters = {{"w", weight({3, 5}).to(at::kBFloat16)}};
    const InputTrial trial = trial_of(spec);
    EXPECT_EQ(trial.arguments().at(0).numbers, DType::BF16);
    EXPECT_EQ(trial.run({{"x", DType::BF16, {5}}}, 2).outputs.at(0).dtype, DType::BF16);
}

TEST(InputTrial, WhatIsOnlyTriedWarnsNobody) {
    const InputTrial trial = trial_of(
        model_with_forward("x, y", "    torch.warn(\"two shapes\", 2)\n    return torch.mse_loss(x, y)\n", {3, 5}));
    ::testing::internal::CaptureStderr();
    trial.run({floats("x", {5}), floats("y", {5})}, 2);
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(InputTrial, OutputsAreListedOneByOne) {
    const InputTrial trial = trial_of(model_with_forward(
        "x", "    h = torch.linear(x, self.w)\n    return h, torch.mean(h), torch.gt(h, 0.0)\n", {3, 5}));
    const TriedForward tried = trial.run({floats("x", {5})}, 2);
    EXPECT_TRUE(tried.all_tensors);
    ASSERT_EQ(tried.outputs.size(), 3U);
    EXPECT_TRUE(tried.outputs[1].shape.empty());
    EXPECT_EQ(tried.outputs[2].dtype, DType::Bool);
    EXPECT_TRUE(tried.outputs[1].has_gradient);
    EXPECT_FALSE(tried.outputs[2].has_gradient);
    EXPECT_FALSE(tried.num_classes.has_value());
}

TEST(InputTrial, ShapesThatDoNotFitAreRefusedAndOthersCanBeTriedAfterwards) {
    const InputTrial trial = trial_of(linear(5, 3));
    EXPECT_THAT(refusal(ErrorKind::BadData, [&] { trial.run({floats("x", {4})}, 2); }), HasSubstr("aten::linear"));
    EXPECT_THAT(trial.run({floats("x", {5})}, 2).outputs.at(0).shape, ElementsAre(2, 3));
}

TEST(InputTrial, ASmallModelRunsOnNumbers) {
    const InputTrial trial = trial_of(model_with_forward("x", "    return x[:, torch.arange(4, 5)] * self.w\n", {1}));
    EXPECT_EQ(trial.run({floats("x", {5})}, 2).problem, "");
    const TriedForward failed = trial.run({floats("x", {4})}, 2);
    EXPECT_THAT(failed.outputs.at(0).shape, ElementsAre(2, 1)) << "the meta device checks no index";
    EXPECT_THAT(failed.problem, HasSubstr("the op aten::index"));
    EXPECT_EQ(trial.run({floats("x", {4, 1 << 28})}, 2).problem, "") << "too large to be tried";
}

TEST(InputTrial, ALossThatIsNotFiniteIsAProblem) {
    const auto problem_of = [](const std::string& loss) {
        return trial_of(model_with_forward("x", "    return " + loss + "\n", {3, 5}))
            .run({floats("x", {5})}, 2)
            .problem;
    };
    EXPECT_EQ(problem_of("torch.mean(torch.linear(x, self.w / torch.norm(self.w)))"), "");
    EXPECT_EQ(problem_of("torch.mean(torch.linear(x, self.w)) / 0"), "the loss is not finite");
}

TEST(InputTrial, IntegersOfATrialAreBelowTheirBound) {
    const InputTrial trial = trial_of(model_with_forward("x", "    return torch.embedding(self.w, x)\n", {3, 2}));
    EXPECT_EQ(trial.run({{"x", DType::I64, {64}, 3}}, 2).problem, "");
    EXPECT_THAT(trial.run({{"x", DType::I64, {64}, 4}}, 2).problem, HasSubstr("aten::embedding"));
}

TEST(InputTrial, RandomOpsRunToo) {
    ModuleSpec model{"Model", "def forward(self, x):\n    return self.drop.forward(self.fc.forward(x))\n"};
    model.children = {{"drop", dropout()}, {"fc", linear(5, 3)}};
    EXPECT_THAT(trial_of(model).run({floats("x", {5})}, 2).outputs.at(0).shape, ElementsAre(2, 3));
}

TEST(InputTrial, UntrustedFilesAreRefused) {
    const ModuleSpec spec = model_with_forward("x", "    torch.save([x], \"a\")\n    return x\n", {2});
    EXPECT_THAT(refusal(ErrorKind::Refused, [&] { trial_of(spec); }), HasSubstr("calls save"));
}

}  // namespace
}  // namespace vpp
