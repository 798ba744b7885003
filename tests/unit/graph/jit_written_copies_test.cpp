#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/graph/models.hpp"

namespace vpp {
namespace {

using namespace test;
using ::testing::HasSubstr;

const TorchScriptOptions kWrittenOptions = options_for({floats("x", {4})});

ModuleSpec model_with_steps(const std::string& lines) {
    ModuleSpec model{"Model", "def forward(self, x):\n" + lines};
    model.parameters = {{"w", weight({4, 4})}};
    model.buffers = {{"steps", values({4})}};
    return model;
}

std::vector<std::string> refusals_of(const Graph& graph) {
    std::vector<std::string> reasons;
    for (const GraphCut& cut : graph.cuts) {
        if (!cut.legal) reasons.push_back(cut.reason);
    }
    return reasons;
}

int copies_in(const Graph& graph) {
    return static_cast<int>(
        std::ranges::count_if(graph.ops, [](const GraphOp& op) { return op.kind == "vpp::copy_written"; }));
}

TEST(WrittenCopies, ABufferIsReadBehindItsLastWriteInAnotherStage) {
    const Graph graph = load_exactly(model_with_steps(R"(
    self.steps += 1.0
    h = torch.tanh(torch.linear(x, self.w))
    h = torch.sin(h)
    h = torch.cos(h) * self.steps
    h = torch.sin(h) + self.steps
    return torch.mean(h)
)"),
                                     kWrittenOptions, {{"x", values({2, 4})}});
    EXPECT_EQ(copies_in(graph), 1);
    ASSERT_EQ(refusals_of(graph).size(), 1U) << "between the write and the copy";
    EXPECT_FALSE(graph.cuts[1].legal);
    EXPECT_TRUE(parameter_of(graph, "steps").written);
    EXPECT_EQ(parameter_of(graph, "steps").uses.size(), 2U);
}

TEST(WrittenCopies, WritesInABranchAndThroughAViewComeBeforeTheCopy) {
    for (const char* lines : {R"(
    if bool(x.sum() > -100.):
        self.steps.mul_(0.5)
    h = torch.sin(torch.linear(x, self.w))
    return torch.mean(torch.cos(h) * self.steps)
)",
                              R"(
    self.steps[1:3].mul_(0.5)
    h = torch.sin(torch.linear(x, self.w))
    self.steps[0] = 0.25
    h = torch.sin(h)
    return torch.mean(torch.cos(h) * self.steps)
)",
                              R"(
    steps = self.steps.add_(1.0)
    h = torch.sin(torch.linear(x, self.w))
    return torch.mean(torch.cos(h) * steps + self.steps[0])
)"}) {
        const Graph graph = load_exactly(model_with_steps(lines), kWrittenOptions, {{"x", values({2, 4})}});
        EXPECT_EQ(copies_in(graph), 1) << lines;
        EXPECT_TRUE(graph.cuts[static_cast<size_t>(graph.num_ops()) - 2].legal) << lines;
    }
}

TEST(WrittenCopies, WhatSharesItsMemoryStaysWithIt) {
    for (const char* lines : {R"(
    part = self.steps[1:3]
    self.steps.mul_(0.5)
    h = torch.sin(torch.linear(x, self.w))
    return torch.mean(torch.cos(h) * self.steps) + part.sum()
)",
                              R"(
    h = torch.sin(torch.linear(x, self.w)) * self.steps
    h = torch.cos(h)
    self.steps.mul_(0.5)
    return torch.mean(h)
)"}) {
        const Graph graph = load_exactly(model_with_steps(lines), kWrittenOptions, {{"x", values({2, 4})}});
        EXPECT_EQ(copies_in(graph), 0) << lines;
        const std::vector<std::string> refusals = refusals_of(graph);
        ASSERT_FALSE(refusals.empty()) << lines;
        EXPECT_THAT(refusals.front(), HasSubstr("'steps' is written in place by the op aten::mul_ in the model's "
                                                "forward"));
    }
}

TEST(WrittenCopies, ALargeBufferIsNotCopied) {
    ModuleSpec model{"Model",
                     "def forward(self, x):\n    self.kept.mul_(0.5)\n    h = torch.sin(torch.linear(x, self.w))\n"
                     "    return torch.mean(h) + self.kept.sum()\n"};
    model.parameters = {{"w", weight({4, 4})}};
    model.buffers = {{"kept", values({(1 << 18) + 1})}};
    EXPECT_EQ(copies_in(load(model, kWrittenOptions).graph), 0);
    model.buffers = {{"kept", values({1 << 18})}};
    EXPECT_EQ(copies_in(load(model, kWrittenOptions).graph), 1);
}

TEST(WrittenCopies, AnArgumentThatIsWrittenGoesOnAsAValue) {
    const Inputs inputs{{"x", values({2, 4})}};
    const Graph graph = load_exactly(model_with_steps(R"(
    x -= 0.5
    h = torch.tanh(torch.linear(x, self.w))
    h = torch.sin(h) * x
    return torch.mean(torch.cos(h) + x + self.steps)
)"),
                                     kWrittenOptions, inputs);
    EXPECT_EQ(copies_in(graph), 1);
    EXPECT_THAT(refusals_of(graph), ::testing::IsEmpty());
    const Graph beside = load_exactly(model_with_steps(R"(
    h = torch.linear(x, self.w)
    parts = [h, x]
    h.mul_(2.0)
    return torch.mean(torch.cat(parts))
)"),
                                      kWrittenOptions, inputs);
    EXPECT_EQ(copies_in(beside), 0) << "its neighbour in a list is written";
    const Graph plain = load_exactly(model_with_steps("    return torch.mean(torch.linear(x - 0.5, self.w) + x)\n"),
                                     kWrittenOptions, inputs);
    EXPECT_EQ(copies_in(plain), 0);
}

TEST(WrittenCopies, WhatForwardGivesIsTheCopyToo) {
    TorchScriptOptions options = kWrittenOptions;
    options.keep_outputs = true;
    const Graph graph = load(model_with_steps("    x -= 0.5\n    self.steps += 1.0\n    h = torch.linear(x, self.w)\n"
                                              "    return torch.mean(h), x, self.steps\n"),
                             options)
                            .graph;
    EXPECT_EQ(copies_in(graph), 2);
    EXPECT_THAT(refusals_of(graph), ::testing::SizeIs(1)) << "between the write of the buffer and its copy";
}

TEST(WrittenCopies, AnArgumentThatIsWrittenLateIsCopiedThere) {
    const Graph graph = load_exactly(model_with_steps(R"(
    h = torch.tanh(torch.linear(self.steps, self.w))
    h = torch.sin(h)
    x[:, 1] = 0.5
    return torch.mean(torch.cos(h) + x)
)"),
                                     kWrittenOptions, {{"x", values({2, 4})}});
    EXPECT_EQ(copies_in(graph), 1);
    EXPECT_TRUE(graph.cuts[1].legal);
    EXPECT_TRUE(graph.cuts[2].legal);
    EXPECT_EQ(graph.inputs[0].name, "x");
}

}  // namespace
}  // namespace vpp
