// Cuts beside lists, dicts, tuples and objects, and beside what a branch gives that no run has seen.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "unit/graph/cut_verdict.hpp"

namespace vpp {
namespace {

using namespace test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CutRulesOfHolders, AListThatABranchGivesIsNotCut) {
    LoadedModel model = load_code(R"JIT(
def forward(self, x):
    held = [torch.exp(x), torch.cos(x)]
    if bool(x.sum() > 0.):
        held = [held[1], torch.tanh(held[0])]
    y = torch.sin(x)
    a = held[0]
    b = held[1]
    return torch.mean(a * y) + torch.mean(b)
)JIT");
    verdict_of(model);
    const int sin = op_of(model.graph, "aten::sin"), taken = op_of(model.graph, "aten::__getitem__", sin);
    EXPECT_THAT(reason_at(model.graph, sin), HasSubstr("holds other tensors, as the data have it"));
    for (int cut : {taken + 1, taken + 2}) {
        EXPECT_EQ(model.graph.cuts[static_cast<size_t>(cut)].legal, cut == taken + 2) << reason_at(model.graph, cut);
    }
}

// The branch that the probe does not take gives its input on, which the op's schema does not say.
TEST(CutRulesOfHolders, WhatABranchThatWasNotSeenMayGiveOnIsNotCutFromIt) {
    ModuleSpec spec{"Model", R"JIT(
def forward(self, x):
    v = torch.tanh(x * self.w)
    if bool(x.sum() > 1000.):
        y = torch.dropout(v, 0.0, True)
    else:
        y = v * 1.0
    s = torch.sin(x)
    return torch.mean(v * y) + torch.mean(s)
)JIT"};
    spec.parameters = {{"w", weight({4})}};
    LoadedModel model = load(spec, kRuleOptions);
    verdict_of(model);
    EXPECT_THAT(reason_at(model.graph, op_of(model.graph, "aten::sin")), HasSubstr("may be the same tensor as 'v"));
}

TEST(CutRulesOfHolders, AWriteInABranchIntoWhatAnOpGaveOnIsSeen) {
    LoadedModel model = load_code(R"JIT(
def forward(self, x):
    v = torch.tanh(x)
    y = x
    if bool(x.sum() > -1000.):
        w = torch.dropout(v, 0.0, True)
        w.mul_(2.0)
        y = w + x
    s = torch.sin(v)
    return torch.mean(v * y) + torch.mean(s)
)JIT");
    EXPECT_GT(verdict_of(model).legal, 0);
    const int tanh = op_of(model.graph, "aten::tanh"), branch = op_of(model.graph, "prim::If");
    const GraphValue& v =
        model.graph.values[static_cast<size_t>(model.graph.ops[static_cast<size_t>(tanh)].outputs[0])];
    EXPECT_THAT(model.graph.tensors[static_cast<size_t>(v.tensors[0])].writers, ElementsAre(branch));
}

TEST(CutRulesOfHolders, ListsThatHoldOneMemoryThatIsWrittenGoTogether) {
    LoadedModel model = load_code(R"JIT(
def forward(self, x):
    a = torch.sin(x)
    p = [a]
    q = [a[:, :2]]
    h = torch.tanh(x)
    p[0].mul_(2.0)
    return torch.mean(q[0]) + torch.mean(h) + torch.mean(p[0])
)JIT");
    const Verdict verdict = verdict_of(model);
    EXPECT_GT(verdict.refused_and_different, 0);
    EXPECT_GT(verdict.legal, 0);
}

TEST(CutRulesOfHolders, AListOfNumbersInTwoContainersIsNotCutWhileItChanges) {
    LoadedModel model = load_code(R"JIT(
def forward(self, x):
    sizes = [1]
    p = [sizes]
    d = {"k": sizes}
    h = torch.tanh(x)
    p[0].append(4)
    y = torch.sin(h) * len(d["k"])
    return torch.mean(y)
)JIT");
    EXPECT_GT(verdict_of(model).refused_and_different, 0);
}

TEST(CutRulesOfHolders, StatisticsThatOtherOpsWriteAreWritten) {
    ModuleSpec spec{"Model", R"JIT(
def forward(self, x):
    m, v = torch.batch_norm_update_stats(x, self.mean, self.var, 0.1)
    h = torch.tanh(x)
    return torch.mean(h * self.mean + self.var + m + v)
)JIT"};
    spec.buffers = {{"mean", weight({4})}, {"var", weight({4}, 1)}};
    LoadedModel model = load(spec, kRuleOptions);
    EXPECT_TRUE(parameter_of(model.graph, "mean").written);
    EXPECT_TRUE(parameter_of(model.graph, "var").written);
    verdict_of(model);
    EXPECT_FALSE(model.graph.cuts[1].legal) << "before the copies of what is read later";
    EXPECT_TRUE(model.graph.cuts[static_cast<size_t>(op_of(model.graph, "aten::tanh"))].legal);
}

TEST(CutRulesOfHolders, WhatABranchMayLeaveOutIsNotCut) {
    LoadedModel model = load_code(R"JIT(
def forward(self, x):
    m: Optional[Tensor] = None
    h = torch.tanh(x)
    if bool(x.sum() > 0.):
        m = torch.cos(h)
    s = torch.sin(h)
    if m is not None:
        s = s + m
    return torch.mean(s)
)JIT");
    verdict_of(model);
    EXPECT_THAT(reason_at(model.graph, op_of(model.graph, "aten::sin")), HasSubstr("holds other tensors"));
}

/// Why there is no cut before the first sine, behind what `lines` make of `x` as `made`.
std::string reason_behind(const std::string& lines) {
    LoadedModel model = load_code("def forward(self, x):\n    n = int(x.sum() > 0.)\n    h = torch.exp(x)\n" + lines +
                                  "    s = torch.sin(h)\n    for one in made:\n        s = s + one\n"
                                  "    return torch.mean(s)\n");
    return reason_at(model.graph, op_of(model.graph, "aten::sin"));
}

TEST(CutRulesOfHolders, HowManyTheDataTakeOfAListIsNotCut) {
    const std::string held = "    held = [h, torch.cos(h)]\n";
    for (const char* made : {"held[:n]", "held * n", "held[n:]"}) {
        EXPECT_THAT(reason_behind(held + "    made = " + made + "\n"), HasSubstr("holds other tensors")) << made;
    }
    EXPECT_EQ(reason_behind(held + "    made = held[1:]\n"), "");
    EXPECT_EQ(reason_behind(held + "    made = held[:h.dim()]\n"), "");
}

TEST(CutRulesOfHolders, WhatIsMadeOfAListOrDictThatABranchChangesIsNotCut) {
    const std::string list = "    held = [h]\n    if n > 0:\n        held.append(torch.cos(h))\n";
    const std::string dict = "    held = {'a': h}\n    if n > 0:\n        held['b'] = torch.cos(h)\n";
    EXPECT_THAT(reason_behind(list + "    made = held[:5]\n"), HasSubstr("holds other tensors"));
    EXPECT_THAT(reason_behind(dict + "    made = held.values()\n"), HasSubstr("holds other tensors"));
}

TEST(CutRulesOfHolders, AListThatGrowsByASumInPlaceIsTheList) {
    EXPECT_THAT(reason_behind("    held = [h]\n    if n > 0:\n        held.append(torch.cos(h))\n"
                              "    held += [torch.tanh(h)]\n    made = held\n"),
                HasSubstr("is changed in place"));
}

TEST(CutRulesOfHolders, WhatATupleOfABranchHoldsMayBeOthers) {
    ModuleSpec spec{"Model", R"JIT(
def forward(self, x):
    v = torch.tanh(x * self.w)
    pair = (v, torch.cos(v))
    if bool(x.sum() > 1000.):
        pair = (pair[1], v * 2.0)
    s = torch.sin(x)
    return torch.mean(pair[0] * s) + torch.mean(pair[1]) + torch.mean(v)
)JIT"};
    spec.parameters = {{"w", weight({4})}};
    LoadedModel model = load(spec, kRuleOptions);
    EXPECT_GT(verdict_of(model).legal, 0);
    EXPECT_THAT(reason_at(model.graph, op_of(model.graph, "aten::sin")), HasSubstr("may be the same tensor as"));
}

TEST(CutRulesOfHolders, AnObjectInAListIsOneToo) {
    LoadedModel model = load_code(R"JIT(
def forward(self, x):
    h = torch.tanh(x)
    guards = [OwnGuard()]
    s = torch.sin(h)
    if len(guards[x.size(0) - 2:]) > 0:
        s = torch.cos(s)
    return torch.mean(h * s)
)JIT");
    const int sin = op_of(model.graph, "aten::sin");
    EXPECT_THAT(reason_at(model.graph, sin), HasSubstr("it lies inside the use of an object of the model's own class"));
}

// Views of one memory by the thousand, which no schema tells: each question is asked once.
TEST(CutRulesOfHolders, ManyValuesOfOneMemoryTakeNoLongTime) {
    std::string code = "def forward(self, x):\n    h = torch.tanh(x)\n";
    for (int i = 0; i < 150; ++i) code += "    h = torch.dropout(h, 0.0, True)\n    h.add_(0.5)\n";
    const LoadedModel model = load_code(code + "    return torch.mean(h)\n");
    EXPECT_EQ(model.graph.num_ops(), 302);
}

TEST(CutRulesOfHolders, ADictWithTensorsForKeysStaysWhereItIs) {
    LoadedModel model = load_code(R"JIT(
def forward(self, x):
    y = torch.tanh(x)
    d = {y: 2}
    s = torch.sin(x)
    k = d[y]
    return torch.mean(torch.exp(y)) * k + torch.mean(s)
)JIT");
    EXPECT_THAT(reason_at(model.graph, op_of(model.graph, "aten::sin")),
                HasSubstr("the keys of 'd.1' are tensors, found by being the same object"));
    EXPECT_TRUE(model.graph.cuts[static_cast<size_t>(op_of(model.graph, "aten::exp"))].legal);
}

// The usual experts: which of them a microbatch goes to is known when it comes.
TEST(CutRulesOfHolders, WhatABranchAddsToMayTakeAGradientThough) {
    ModuleSpec spec{"Model", R"JIT(
def forward(self, x):
    y = torch.tanh(x * self.w)
    out = torch.zeros_like(x)
    if bool(torch.gt(torch.sum(x), 1000.0)):
        torch.add_(out, y)
    s = torch.sin(y)
    return torch.mean(torch.exp(out)) + torch.mean(s)
)JIT"};
    spec.parameters = {{"w", weight({4})}};
    LoadedModel model = load(spec, kRuleOptions);
    EXPECT_EQ(verdict_of(model).refused, 0);
    const int sin = op_of(model.graph, "aten::sin");
    EXPECT_TRUE(model.graph.cuts[static_cast<size_t>(sin)].legal);
    const auto is_out = [](const GraphTensor& tensor) { return tensor.name.starts_with("out"); };
    const auto out = std::find_if(model.graph.tensors.begin(), model.graph.tensors.end(), is_out);
    ASSERT_NE(out, model.graph.tensors.end());
    EXPECT_FALSE(out->requires_grad);
    EXPECT_TRUE(out->requires_grad_at(sin));
}

}  // namespace
}  // namespace vpp
