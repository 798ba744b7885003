// List elements that a branch sets: which are lifted out of it, and that both ways through it keep their bits.
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "unit/graph/models.hpp"

namespace vpp {
namespace {

using namespace test;

/// Loads it and compares bits for an input and its negative, of which each takes another branch.
Graph with_exact_branches(const ModuleSpec& spec) {
    const TorchScriptOptions options = options_for({floats("x", {4})});
    load_exactly(spec, options, {{"x", -values({2, 4})}});
    return load_exactly(spec, options, {{"x", values({2, 4})}});
}

int num_settings(const Graph& graph) {
    int count = 0;
    for (const GraphOp& op : graph.ops) count += op.kind == "aten::_set_item";
    return count;
}

void expect_lifted(const std::string& code) {
    const Graph graph = with_exact_branches({"Model", code});
    EXPECT_EQ(num_settings(graph), 0) << code;
    EXPECT_EQ(graph.num_legal_cuts(), graph.num_ops() - 1) << code;
}

/// The list stays one that changes, so ops between its making and its last use stay together.
void expect_left(const std::string& code) {
    const Graph graph = with_exact_branches({"Model", code});
    EXPECT_LT(graph.num_legal_cuts(), graph.num_ops() - 1) << code;
}

TEST(LiftSettings, WhatOneBranchSetsIsGivenByBoth) {
    expect_lifted(R"JIT(
def forward(self, x):
    held = [torch.exp(x), torch.cos(x)]
    if bool(x.sum() > 0.):
        held[0] = torch.tanh(x)
    return torch.mean(held[0] * held[1])
)JIT");
    expect_lifted(R"JIT(
def forward(self, x):
    held = [torch.exp(x), torch.cos(x)]
    held[1] = torch.sin(held[1])
    if bool(x.sum() > 0.):
        held[0] = held[1] * x
        held[-1] = torch.tanh(x)
    else:
        held[1] = torch.exp(held[0])
        held[1] = torch.sin(x)
    held[0] = held[0] + x
    return torch.mean(torch.cat(held, 1))
)JIT");
}

TEST(LiftSettings, ThoseOfInnerBranchesComeOutOfAll) {
    expect_lifted(R"JIT(
def forward(self, x):
    held = [torch.exp(x), torch.cos(x)]
    if bool(x.sum() > 0.):
        y = torch.tanh(x)
        if bool(y.sum() > 0.5):
            held[0] = y
        else:
            held[1] = y * x
    else:
        if bool(x.sum() < -0.1):
            held[1] = torch.sin(x)
    return torch.mean(held[0] * held[1])
)JIT");
}

TEST(LiftSettings, NumbersThatAreCopiedFromAnAttribute) {
    ModuleSpec model{"Model", R"JIT(
def forward(self, x):
    shifts = self.shifts.copy()
    if bool(x.sum() > 0.):
        shifts[0] = 0
    y = torch.exp(x)
    if shifts[0] + shifts[1] > 2:
        y = torch.roll(y, shifts, [0, 1])
    z = torch.tanh(y)
    return torch.mean(torch.roll(z * x, [-shifts[0], -shifts[1]], [0, 1]))
)JIT"};
    model.attributes = {{"shifts", c10::List<int64_t>({1, 2})}};
    const Graph graph = with_exact_branches(model);
    EXPECT_EQ(num_settings(graph), 0);
    EXPECT_EQ(graph.num_legal_cuts(), graph.num_ops() - 1);
}

TEST(LiftSettings, WhatTheBranchReadsIsWhatItSet) {
    expect_lifted(R"JIT(
def forward(self, x):
    held = [torch.exp(x), torch.cos(x), x]
    y = torch.sin(x)
    if bool(x.sum() > 0.):
        z = held[0] * held[1]
        held[0] = torch.tanh(z)
        y = torch.cat(held, 1)[:, 1:5] + held[0] * held[2]
        held[1] = torch.exp(y)
        for i in range(x.size(0) + 1):
            y = y * held[i]
        held[0] = held[1] * held[0]
    else:
        held[1], held[0] = held[0], held[1]
    return torch.mean(held[0] * held[1] + y)
)JIT");
}

TEST(LiftSettings, WhatALoopSetsStays) {
    expect_left(R"JIT(
def forward(self, x):
    held = [torch.exp(x), torch.cos(x)]
    if bool(x.sum() > 0.):
        held[1] = torch.sin(x)
        for i in range(x.size(0)):
            held[1] = held[0] * 0.5
            held[0] = torch.tanh(held[1])
    y = held[0] * held[1]
    return torch.mean(y)
)JIT");
}

TEST(LiftSettings, AListThatSomethingHoldsOrThatGrowsIsLeftAlone) {
    expect_left(R"JIT(
def forward(self, x):
    held = [torch.exp(x), torch.cos(x)]
    both = [held, held]
    if bool(x.sum() > 0.):
        held[0] = torch.tanh(x)
        x = both[1][0] * x
    return torch.mean(both[x.size(0) - 2][0] * held[1] * x)
)JIT");
    expect_left(R"JIT(
def forward(self, x):
    held = [torch.exp(x), torch.cos(x)]
    if bool(x.sum() > 0.):
        held.append(torch.tanh(x))
        held[-1] = torch.sin(x)
    return torch.mean(torch.sin(held[len(held) - 1]) * held[1])
)JIT");
}

TEST(LiftSettings, AListOfTheBranchItselfStaysInIt) {
    const Graph graph = with_exact_branches({"Model", R"JIT(
def forward(self, x):
    y = torch.sin(x)
    if bool(x.sum() > 0.):
        held = [torch.exp(x), torch.cos(x)]
        if bool(x.sum() > 0.5):
            held[0] = torch.tanh(x)
        y = held[0] * held[1]
    return torch.mean(y)
)JIT"});
    EXPECT_EQ(graph.num_legal_cuts(), graph.num_ops() - 1);
}

}  // namespace
}  // namespace vpp
