// Which cuts are legal. The judge is the run: pieces with memory of their own must give the bits of the whole, at every
// cut that is called legal, and some refused cut must really give others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/graph/cut_verdict.hpp"

namespace vpp {
namespace {

using namespace test;
using ::testing::HasSubstr;

TEST(CutRules, AChainMayBeCutEverywhere) {
    LoadedModel model = load_code("def forward(self, x):\n    return torch.mean(torch.tanh(torch.relu(x)).view(-1))\n");
    const Verdict verdict = verdict_of(model);
    EXPECT_EQ(verdict.refused, 0);
    EXPECT_EQ(verdict.legal, model.graph.num_ops() - 1);
}

TEST(CutRules, AWriteThroughAViewBindsViewAndBase) {
    LoadedModel model = load_code(R"JIT(
def forward(self, x):
    h = torch.tanh(x)
    v = h[:, :2]
    s = torch.sin(v)
    v.mul_(3.0)
    return torch.mean(h) + torch.mean(s)
)JIT");
    const Verdict verdict = verdict_of(model);
    EXPECT_GT(verdict.refused_and_different, 0);
    EXPECT_GT(verdict.legal, 0);
    const int write = op_of(model.graph, "aten::mul_");
    EXPECT_THAT(reason_at(model.graph, write), HasSubstr("may share memory that is written in place"));
    EXPECT_TRUE(model.graph.cuts[static_cast<size_t>(op_of(model.graph, "aten::mean"))].legal) << "the view is dead";
}

TEST(CutRules, ThePairIsRefusedAlsoWhenTheWriteCameBefore) {
    // Base and view, written before the cut, alive behind it: the forward bits are right, those of gradients are not.
    LoadedModel model = load_code(R"JIT(
def forward(self, x):
    h = torch.tanh(x)
    v = h[:, :2]
    v.mul_(3.0)
    s = torch.sin(x)
    return torch.mean(h) + torch.mean(v) + torch.mean(s)
)JIT");
    verdict_of(model);
    EXPECT_FALSE(model.graph.cuts[static_cast<size_t>(op_of(model.graph, "aten::sin"))].legal);
}

TEST(CutRules, ViewsThatAreMadeBehindTheLastWriteMayBeCut) {
    LoadedModel model = load_code(R"JIT(
def forward(self, x):
    h = torch.tanh(x)
    h = torch.relu_(h)
    v, w = torch.chunk(h, 2, 1)
    s = torch.sin(v)
    return torch.mean(h) + torch.mean(w * s)
)JIT");
    EXPECT_EQ(verdict_of(model).refused, 0);
    LoadedModel late = load_code(R"JIT(
def forward(self, x):
    h = torch.tanh(x)
    v = h.view([-1])
    h = torch.relu_(h)
    s = torch.sin(x)
    return torch.mean(h) + torch.mean(v) + torch.mean(s)
)JIT");
    verdict_of(late);
    EXPECT_FALSE(late.graph.cuts[static_cast<size_t>(op_of(late.graph, "aten::sin"))].legal) << "the view came before";
}

TEST(CutRules, AViewThatNoSchemaTellsIsOne) {
    for (const char* view : {"torch.einsum(\"ij->ji\", [self.m])", "torch.broadcast_tensors([self.m, x])[0]"}) {
        ModuleSpec spec{"Model", std::string("def forward(self, x):\n    a = ") + view + R"JIT(
    y = torch.sin(x)
    self.m.mul_(2.0)
    y = torch.cos(y)
    return torch.mean(a) + torch.mean(y)
)JIT"};
        spec.buffers = {{"m", weight({2, 4})}};
        LoadedModel model = load(spec, kRuleOptions);
        verdict_of(model);
        EXPECT_EQ(reason_at(model.graph, op_of(model.graph, "aten::cos")),
                  "'m' is written in place by the op aten::mul_ in the model's forward at <string>:4 and used on both "
                  "sides")
            << view;
    }
}

TEST(CutRules, WhatABranchGivesIsNotCutFromWhatItMayBe) {
    const auto legal_at_sin = [](const std::string& branch, const std::string& condition) {
        ModuleSpec spec{"Model", "def forward(self, x):\n    h = torch.tanh(x * self.w)\n    k = h\n    if " +
                                     condition + ":\n        k = " + branch + "\n    s = torch.sin(x)\n" +
                                     "    return torch.mean(h * k) + torch.mean(s)\n"};
        spec.parameters = {{"w", weight({4})}};
        LoadedModel model = load(spec, kRuleOptions);
        verdict_of(model);
        const GraphCut& cut = model.graph.cuts[static_cast<size_t>(op_of(model.graph, "aten::sin"))];
        const std::string reason =
            "'k' may be the same tensor as 'h.1', as the data have it, and both are used behind it";
        EXPECT_EQ(cut.reason, cut.legal ? "" : reason);
        return cut.legal;
    };
    EXPECT_FALSE(legal_at_sin("torch.relu(h)", "bool(torch.sum(x) > 0.0)"));
    EXPECT_TRUE(legal_at_sin("torch.relu(h)", "h.dim() > 7")) << "this branch goes the same way for every microbatch";
    // Behind the last use of one of the two, the other may be anything.
    LoadedModel alone = load_code(R"JIT(
def forward(self, x):
    h = torch.tanh(x)
    if bool(torch.sum(x) > 0.0):
        h = torch.relu(h)
    return torch.mean(torch.sin(h))
)JIT");
    EXPECT_EQ(verdict_of(alone).refused, 0);
}

TEST(CutRules, ViewsThatNobodyWritesMayBeCut) {
    LoadedModel model = load_code(R"JIT(
def forward(self, x):
    h = torch.tanh(x)
    v = h[:, :2]
    return torch.mean(h) + torch.mean(v)
)JIT");
    EXPECT_EQ(verdict_of(model).refused, 0);
}

TEST(CutRules, OneWrittenValueAloneMayBeCutBeforeItsWrite) {
    LoadedModel model = load_code(R"JIT(
def forward(self, x):
    h = torch.tanh(x)
    h.relu_()
    return torch.mean(torch.sin(h))
)JIT");
    const Verdict verdict = verdict_of(model);
    EXPECT_TRUE(model.graph.cuts[static_cast<size_t>(op_of(model.graph, "aten::relu_"))].legal);
    EXPECT_GT(verdict.legal, 0);
}

const GraphTensor& tensor_named(const Graph& graph, const std::string& name) {
    return *std::find_if(graph.tensors.begin(), graph.tensors.end(), [&](const auto& t) { return t.name == name; });
}

TEST(CutRules, ATensorIsSentWithTheGradientThatItHasAtTheCut) {
    ModuleSpec spec{"Model", R"JIT(
def forward(self, x):
    board = torch.zeros_like(x)
    h = torch.cos(board) * self.w
    board.add_(h)
    return torch.mean(torch.sin(board))
)JIT"};
    spec.parameters = {{"w", weight({4})}};
    LoadedModel model = load(spec, kRuleOptions);
    EXPECT_EQ(verdict_of(model).refused, 0);
    const int write = op_of(model.graph, "aten::add_");
    const GraphTensor& board = tensor_named(model.graph, "board.1");
    EXPECT_FALSE(board.requires_grad);
    EXPECT_THAT(board.gradient_flips, ::testing::ElementsAre(write));
    EXPECT_THAT(board.writers, ::testing::ElementsAre(write));
}

TEST(CutRules, ATensorThatLosesItsGradientIsNotSentBefore) {
    ModuleSpec spec{"Model", R"JIT(
def forward(self, x):
    held = x * self.w
    wave = torch.sin(held)
    held.detach_()
    return torch.mean(wave * torch.cos(held))
)JIT"};
    spec.parameters = {{"w", weight({4})}};
    LoadedModel model = load(spec, kRuleOptions);
    const int write = op_of(model.graph, "aten::detach_");
    for (int cut = 1; cut < model.graph.num_ops(); ++cut) {
        EXPECT_EQ(model.graph.cuts[static_cast<size_t>(cut)].legal, cut > write) << cut;
    }
    EXPECT_EQ(reason_at(model.graph, write), "'held.1' loses its gradient in place behind it");
}

TEST(CutRules, AModelInputThatIsWrittenMayCrossBehindTheWrite) {
    LoadedModel model = load_code(R"JIT(
def forward(self, x):
    x.mul_(2.0)
    h = torch.sin(x)
    h = torch.cos(h)
    return torch.mean(h) + torch.mean(x)
)JIT");
    EXPECT_EQ(verdict_of(model).refused, 0);
}

ModuleSpec norm_model(const std::string& code) {
    ModuleSpec model{"Model", code};
    model.children = {{"bn", batch_norm(4)}, {"l", linear(4, 4)}};
    return model;
}

TEST(CutRules, BatchNormUsedTwiceKeepsItsStatisticsInOneStage) {
    const std::string twice =
        "def forward(self, x):\n    return torch.mean(self.bn.forward(torch.tanh(self.bn.forward(x))))\n";
    LoadedModel model = load(norm_model(twice), kRuleOptions);
    const int middle = op_of(model.graph, "aten::tanh");
    EXPECT_FALSE(model.graph.cuts[static_cast<size_t>(middle)].legal);
    EXPECT_TRUE(parameter_of(model.graph, "bn.running_mean").written);
    EXPECT_TRUE(parameter_of(model.graph, "bn.num_batches_tracked").written);
    // The counterpart: one use, cuts on both sides of it.
    const std::string once =
        "def forward(self, x):\n    return torch.mean(torch.tanh(self.bn.forward(self.l.forward(x))))\n";
    LoadedModel legal = load(norm_model(once), kRuleOptions);
    EXPECT_GT(verdict_of(legal).legal, 2);
    // In evaluation nothing writes them, and weights bind nobody.
    TorchScriptOptions evaluation = kRuleOptions;
    evaluation.training = false;
    LoadedModel tied = load(norm_model(twice), evaluation);
    EXPECT_FALSE(parameter_of(tied.graph, "bn.running_mean").written);
    EXPECT_EQ(verdict_of(tied).refused, 0);
}

TEST(CutRules, ABufferWrittenHereAndReadThereIsRefused) {
    const std::string code = R"JIT(
def forward(self, x):
    part = self.mean.view([1])
    h = torch.sin(x)
    self.mean.mul_(0.9).add_(torch.mean(h.detach()))
    h = torch.cos(h)
    return torch.mean(h * part)
)JIT";
    ModuleSpec spec{"Model", code};
    spec.buffers = {{"mean", values({})}};
    LoadedModel model = load(spec, kRuleOptions);
    const Verdict verdict = verdict_of(model);
    EXPECT_GT(verdict.refused_and_different, 0) << "a second stage would have what was there before the write";
    EXPECT_FALSE(model.graph.cuts[static_cast<size_t>(op_of(model.graph, "aten::cos"))].legal);
}

TEST(CutRules, AConstantBufferMayBeReadOnBothSides) {
    ModuleSpec spec{"Model", "def forward(self, x):\n    return torch.mean(torch.sin(x * self.t) * self.t)\n"};
    spec.buffers = {{"t", values({4})}};
    LoadedModel model = load(spec, kRuleOptions);
    EXPECT_EQ(verdict_of(model).refused, 0);
}

TEST(CutRules, TiedAndFrozenParametersBindNobody) {
    const std::string code = "def forward(self, x):\n    return torch.mean(torch.sin(x * self.w) * self.w)\n";
    LoadedModel trained = load({"Model", code, {{"w", weight({4})}}}, kRuleOptions);
    EXPECT_EQ(verdict_of(trained).refused, 0);
    LoadedModel frozen = load({"Model", code, {{"w", values({4})}}}, kRuleOptions);
    EXPECT_EQ(verdict_of(frozen).refused, 0);
}

TEST(CutRules, AListThatGrowsAtTheTopLevelMayBeCut) {
    LoadedModel model = load_code(R"JIT(
def forward(self, x):
    outs: List[Tensor] = []
    h = torch.tanh(x)
    outs.append(h)
    h = torch.sin(h)
    h = torch.cos(h)
    outs.append(h)
    return torch.mean(outs[0] + outs[1])
)JIT");
    const Verdict verdict = verdict_of(model);
    EXPECT_EQ(verdict.refused, 0) << "the appends became values";
}

TEST(CutRules, AListThatALoopFillsIsNotCut) {
    // The probe sees the list at its end; before, it holds less.
    LoadedModel model = load_code(R"JIT(
def forward(self, x):
    y = torch.exp(x)
    outs: List[Tensor] = []
    h = torch.tanh(x)
    for i in range(x.size(0)):
        h = torch.sin(h)
        outs.append(torch.abs(h))
    h = torch.cos(outs[0] + outs[1])
    return torch.mean(h) + torch.mean(y)
)JIT");
    const Verdict verdict = verdict_of(model);
    const int loop = op_of(model.graph, "prim::Loop");
    EXPECT_FALSE(model.graph.cuts[static_cast<size_t>(loop)].legal);
    EXPECT_THAT(reason_at(model.graph, loop), HasSubstr("is changed in place"));
    EXPECT_TRUE(model.graph.cuts[static_cast<size_t>(op_of(model.graph, "aten::exp")) + 1].legal);
    EXPECT_TRUE(model.graph.cuts[static_cast<size_t>(op_of(model.graph, "aten::cos"))].legal) << "the list is dead";
    EXPECT_GT(verdict.refused, 2);
}

TEST(CutRules, AListOfNumbersThatALoopFillsIsCutBehindIt) {
    // As in [size // 4 for size in x.shape].
    LoadedModel model = load_code(R"JIT(
def forward(self, x):
    y = torch.exp(x)
    sizes: List[int] = []
    for size in torch.sin(x).shape:
        sizes.append(size * 2)
    y = torch.cos(y)
    y = torch.tanh(y)
    return torch.mean(y * sizes[0]) + len(sizes)
)JIT");
    const Verdict verdict = verdict_of(model);
    const int loop = op_of(model.graph, "prim::Loop");
    EXPECT_THAT(reason_at(model.graph, loop), HasSubstr("is changed in place"));
    for (const char* op : {"aten::cos", "aten::tanh", "aten::mul", "aten::mean"}) {
        EXPECT_TRUE(model.graph.cuts[static_cast<size_t>(op_of(model.graph, op))].legal) << op;
    }
    EXPECT_GT(verdict.refused, 0);
}

TEST(CutRules, ADictOfNumbersAndAListThatMayBeNoneAreCutBehindTheirChanges) {
    // As in the rearrange of einops.
    LoadedModel model = load_code(R"JIT(
def forward(self, x):
    y = torch.exp(x)
    axes: Dict[int, int] = {}
    filled: List[int] = []
    for size in torch.sin(x).shape:
        axes[size] = size * 2
        filled.append(size)
    sizes: Optional[List[int]] = None
    if bool(x.sum() > 0.):
        sizes = filled
    y = torch.cos(y)
    y = torch.tanh(y)
    scale = 5
    if sizes is not None:
        scale = sizes[0]
    return torch.mean(y * scale) + len(axes)
)JIT");
    const Verdict verdict = verdict_of(model);
    EXPECT_THAT(reason_at(model.graph, op_of(model.graph, "prim::Loop")), HasSubstr("is changed in place"));
    for (const char* op : {"aten::cos", "aten::tanh", "aten::mul", "aten::mean"}) {
        EXPECT_TRUE(model.graph.cuts[static_cast<size_t>(op_of(model.graph, op))].legal) << op;
    }
    EXPECT_GT(verdict.refused, 0);
}

TEST(CutRules, ADictThatIsStillFilledIsNotCut) {
    LoadedModel model = load_code(R"JIT(
def forward(self, x):
    made: Dict[str, Tensor] = {}
    made["a"] = torch.tanh(x)
    if x.size(0) > 1:
        made["c"] = torch.cos(x)
    made["b"] = torch.sin(x)
    return torch.mean(torch.exp(made["a"] + made["b"]))
)JIT");
    const Verdict verdict = verdict_of(model);
    EXPECT_FALSE(model.graph.cuts[static_cast<size_t>(op_of(model.graph, "aten::sin"))].legal);
    EXPECT_TRUE(model.graph.cuts[static_cast<size_t>(op_of(model.graph, "aten::exp"))].legal);
    EXPECT_GT(verdict.refused, 0);
}

TEST(CutRules, WhatTorchAutogradGradGoesBackThroughStaysWhole) {
    LoadedModel model = load_code(R"JIT(
def forward(self, x):
    t = torch.mul(x, 1.0)
    s = torch.sin(x)
    t.requires_grad_(True)
    h = torch.exp(t)
    u = torch.sum(torch.cos(h))
    g = torch.grad([u], [t], None, True, True, False)[0]
    assert g is not None
    return torch.mean(torch.abs(g) + s)
)JIT");
    verdict_of(model);
    const int exp = op_of(model.graph, "aten::exp"), grad = op_of(model.graph, "aten::grad");
    for (int cut = exp + 1; cut <= grad; ++cut) {
        EXPECT_THAT(reason_at(model.graph, cut), HasSubstr("torch.autograd.grad (op " + std::to_string(grad) +
                                                           ") goes back through what lies there"));
    }
    EXPECT_TRUE(model.graph.cuts[static_cast<size_t>(op_of(model.graph, "aten::sin"))].legal);
    EXPECT_TRUE(model.graph.cuts[static_cast<size_t>(op_of(model.graph, "aten::abs"))].legal);
}

TEST(CutRules, InABranchToo) {
    LoadedModel model = load_code(R"JIT(
def forward(self, x):
    t = torch.mul(x, 1.0)
    t.requires_grad_(True)
    u = torch.sum(torch.cos(torch.exp(t)))
    out = torch.mean(u)
    if bool(torch.sum(x) > -100.0):
        g = torch.grad([u], [t], None, True, True, True)[0]
        if g is not None:
            out = out + torch.mean(torch.abs(g))
    return torch.sigmoid(out)
)JIT");
    verdict_of(model);
    EXPECT_THAT(reason_at(model.graph, op_of(model.graph, "aten::cos")), HasSubstr("torch.autograd.grad"));
    EXPECT_TRUE(model.graph.cuts[static_cast<size_t>(op_of(model.graph, "aten::sigmoid"))].legal);
}

TEST(CutRules, TheMemoryAroundAViewDoesNotGoOver) {
    LoadedModel model = load_code(R"JIT(
def forward(self, x):
    h = torch.tanh(x)
    v = h[:, ::2]
    s = torch.sin(v)
    w = torch.as_strided(v, [2, 3], [4, 1])
    return torch.mean(torch.exp(w)) + torch.mean(s)
)JIT");
    EXPECT_GT(verdict_of(model).refused_and_different, 0);
    const int sin = op_of(model.graph, "aten::sin"), exp = op_of(model.graph, "aten::exp");
    EXPECT_THAT(reason_at(model.graph, sin), HasSubstr("takes memory around 'v.1', which does not go over with it"));
    EXPECT_TRUE(model.graph.cuts[static_cast<size_t>(exp)].legal);
}

TEST(CutRules, AWriteThatBackwardDoesNotSeeStaysWithWhatMadeTheMemory) {
    LoadedModel model = load_code(R"JIT(
def forward(self, x):
    h = torch.tanh(x)
    s = torch.sin(x)
    h.data.mul_(0.5)
    e = torch.exp(h)
    return torch.mean(e) + torch.mean(s.data)
)JIT");
    verdict_of(model);
    for (const char* kind : {"aten::sin", "prim::data", "aten::mul_"}) {
        EXPECT_THAT(reason_at(model.graph, op_of(model.graph, kind)), HasSubstr("'h.1' is written through .data"))
            << kind;
    }
    for (const char* kind : {"aten::exp", "aten::mean"}) {
        EXPECT_TRUE(model.graph.cuts[static_cast<size_t>(op_of(model.graph, kind))].legal) << kind;
    }
    const int read = op_of(model.graph, "prim::data", op_of(model.graph, "aten::exp"));
    EXPECT_TRUE(model.graph.cuts[static_cast<size_t>(read)].legal) << "nobody writes there";
}

TEST(CutRules, NorDoesWhatABranchHasMadeAPartOf) {
    LoadedModel model = load_code(R"JIT(
def forward(self, x):
    if bool(torch.gt(torch.sum(x), -1000.0)):
        v = torch.mul(torch.arange(40), 1.0)[10:20]
    else:
        v = torch.ones([10])
    s = torch.sin(x)
    w = torch.as_strided(v, [16], [1], 0)
    return torch.mean(torch.exp(w)) + torch.mean(s)
)JIT");
    EXPECT_THAT(reason_at(model.graph, op_of(model.graph, "aten::sin")), HasSubstr("takes memory around 'v"));
    EXPECT_TRUE(model.graph.cuts[static_cast<size_t>(op_of(model.graph, "aten::exp"))].legal);
}

TEST(CutRules, NorDoesThePlaceInIt) {
    LoadedModel model = load_code(R"JIT(
def forward(self, x):
    v = torch.flatten(torch.tanh(x))[2:]
    s = torch.sin(x)
    k = torch.storage_offset(v)
    return torch.mean(torch.exp(v)) * k + torch.mean(s)
)JIT");
    EXPECT_THAT(reason_at(model.graph, op_of(model.graph, "aten::sin")), HasSubstr("takes memory around"));
    EXPECT_TRUE(model.graph.cuts[static_cast<size_t>(op_of(model.graph, "aten::exp"))].legal);
}

TEST(CutRules, MemoryThatNobodySharesGoesOverWhole) {
    LoadedModel model = load_code(R"JIT(
def forward(self, x):
    h = torch.tanh(x)
    s = torch.sin(x)
    w = torch.as_strided(h, [2, 3], [4, 1])
    return torch.mean(torch.exp(w)) + torch.mean(s)
)JIT");
    EXPECT_EQ(verdict_of(model).refused, 0);
}

TEST(CutRules, SoDoesMemoryThatSeveralShareWhole) {
    LoadedModel model = load_code(R"JIT(
def forward(self, x):
    h = torch.tanh(x)
    v = torch.transpose(h, 0, 1)
    s = torch.sin(h)
    w = torch.as_strided(v, [2, 3], [4, 1])
    return torch.mean(torch.exp(w)) + torch.mean(s * h)
)JIT");
    EXPECT_EQ(verdict_of(model).refused, 0);
}

TEST(CutRules, AnExpandedPartIsNotTheMemoryThatItLiesIn) {
    LoadedModel model = load_code(R"JIT(
def forward(self, x):
    h = torch.tanh(x)
    v = h[:1].expand([9, 4])
    s = torch.sin(x)
    w = torch.as_strided(v, [2, 3], [4, 1])
    return torch.mean(torch.exp(w)) + torch.mean(s)
)JIT");
    EXPECT_THAT(reason_at(model.graph, op_of(model.graph, "aten::sin")), HasSubstr("takes memory around"));
    verdict_of(model);
}

TEST(CutRules, ViewsInOneListAreAPairToo) {
    const std::string code = R"JIT(
def forward(self, x):
    h = torch.tanh(x)
    parts = torch.tensor_split(h, 2, 1)
    s = torch.sin(x)
    v = parts[0]
    w = parts[1]
    w.add_(0.25)
    return torch.mean(torch.exp(w)) + torch.mean(s) + torch.mean(v)
)JIT";
    LoadedModel model = load_code(code);
    verdict_of(model);
    EXPECT_THAT(reason_at(model.graph, op_of(model.graph, "aten::sin")),
                HasSubstr("tensors in 'parts.1' may share memory that is written in place behind it"));
    std::string unwritten = code;
    unwritten.replace(unwritten.find("add_"), 4, "add");
    model = load_code(unwritten);
    EXPECT_EQ(verdict_of(model).refused, 0);
}

TEST(CutRules, AViewInsideOfAnOpThatIsWrittenStaysWithIt) {
    // A linear of three dims with a bias is a view of the one of two.
    const auto legal_behind_linear = [](const std::string& shape, const std::string& write) {
        LoadedModel model =
            load({"Model",
                  "def forward(self, x):\n    h = torch.linear(x.view(" + shape + "), self.w, self.b)\n    torch." +
                      write + "(h)\n    return torch.mean(torch.sin(h))\n",
                  {{"w", weight({4, 4})}, {"b", weight({4})}}},
                 kRuleOptions);
        const GraphCut& cut = model.graph.cuts[static_cast<size_t>(op_of(model.graph, "aten::linear")) + 1];
        EXPECT_EQ(cut.legal, cut.reason != "'h.1' is a view that is written in place behind it") << cut.reason;
        return cut.legal;
    };
    EXPECT_FALSE(legal_behind_linear("[2, 1, 4]", "relu_"));
    EXPECT_TRUE(legal_behind_linear("[2, 4]", "relu_"));
    EXPECT_TRUE(legal_behind_linear("[2, 1, 4]", "relu"));
}

TEST(CutRules, AViewThatNobodyReadsAgainDoesNotKeepTheOpsTogether) {
    // As recurrences fill a tensor: what it is a part of goes over, and the view stays where it was written.
    LoadedModel model = load({"Model",
                              R"JIT(
def forward(self, x):
    out = torch.mul(x, self.w)
    first = torch.select(out, 1, 0)
    torch.copy_(first, torch.tanh(torch.select(x, 1, 0)))
    state = torch.sin(torch.select(x, 1, 1))
    second = torch.select(out, 1, 1)
    torch.copy_(second, state)
    return torch.mean(torch.exp(out))
)JIT",
                              {{"w", weight({4})}}},
                             kRuleOptions);
    EXPECT_EQ(reason_at(model.graph, op_of(model.graph, "aten::sin")), "");
    EXPECT_THAT(reason_at(model.graph, op_of(model.graph, "aten::tanh")),
                HasSubstr("'first.1' is a view that is written in place behind it"));
    verdict_of(model);
}

TEST(CutRules, WhatNoMessageHoldsIsNotCut) {
    LoadedModel model = load_code(R"JIT(
def forward(self, x):
    h = torch.tanh(x)
    z = torch.fft_fft(h)
    z = z * 2.0
    v = torch.imag(torch.conj(z))
    s = torch.sin(v)
    p = torch.exp(h.to_sparse().to_dense())
    return torch.mean(torch.cos(s) * v) + torch.mean(p)
)JIT");
    verdict_of(model);
    const auto legal = [&](const std::string& kind) {
        return model.graph.cuts[static_cast<size_t>(op_of(model.graph, kind))].legal;
    };
    for (const char* complex : {"aten::fft_fft", "aten::mul", "aten::conj", "aten::imag"}) {
        EXPECT_TRUE(legal(complex)) << complex;
    }
    for (const char* live : {"aten::sin", "aten::to_dense", "aten::cos"}) EXPECT_FALSE(legal(live)) << live;
    EXPECT_THAT(reason_at(model.graph, op_of(model.graph, "aten::sin")), HasSubstr("which cannot be sent"));
    const int behind = op_of(model.graph, "aten::mul", op_of(model.graph, "aten::cos")) + 1;
    EXPECT_TRUE(model.graph.cuts[static_cast<size_t>(behind)].legal);
}

TEST(CutRules, TheRangeOfAGuardOfTheModelsOwnStaysWhole) {
    LoadedModel model = load_code(R"JIT(
def forward(self, x):
    h = torch.tanh(x)
    with OwnGuard():
        s = torch.sin(h)
        s = torch.cos(s)
    return torch.mean(h * s)
)JIT");
    verdict_of(model);
    const int enter = op_of(model.graph, "prim::Enter"), exit = op_of(model.graph, "prim::Exit");
    ASSERT_LT(enter, exit);
    for (int cut = enter; cut <= exit; ++cut) {
        EXPECT_FALSE(model.graph.cuts[static_cast<size_t>(cut)].legal) << "cut " << cut;
        EXPECT_THAT(reason_at(model.graph, cut), HasSubstr("own class"));
    }
    EXPECT_TRUE(model.graph.cuts[static_cast<size_t>(op_of(model.graph, "aten::tanh")) + 1].legal);
    EXPECT_TRUE(model.graph.cuts[static_cast<size_t>(exit) + 1].legal);
}

}  // namespace
}  // namespace vpp
