// Keyed randomness: a mask depends on key, call site and execution of that site, and on nothing else.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/graph/models.hpp"

namespace vpp {
namespace {

using namespace test;

const TorchScriptOptions kRandomOptions = options_for({floats("x", {64})});
const Inputs kOnes{{"x", at::ones({2, 64})}};

ModuleSpec two_dropouts() {
    ModuleSpec model{"Model",
                     R"JIT(
def forward(self, x):
    a = self.d1.forward(x)
    b = self.d2.forward(x)
    return torch.mean(a * self.w + b * b), a, b
)JIT",
                     {{"w", weight({64})}}};
    model.children = {{"d1", dropout()}, {"d2", dropout()}};
    return model;
}

/// The bits of what the dropouts make.
std::vector<std::string> masks_of(LoadedModel& model, uint64_t key) {
    std::vector<int> wanted;
    for (const GraphOp& op : model.graph.ops) {
        if (op.random) wanted.push_back(op.outputs.at(0));
    }
    std::vector<std::string> masks;
    for (const c10::IValue& value : run_whole(model, wanted, kOnes, key)) masks.push_back(bits_of(value.toTensor()));
    return masks;
}

TEST(Randomness, ARandomOpIsMarkedAndOthersAreNot) {
    const Graph graph = load(two_dropouts(), kRandomOptions).graph;
    for (const GraphOp& op : graph.ops) EXPECT_EQ(op.random, op.kind == "aten::dropout") << op.kind;
}

TEST(Randomness, MasksRepeatWithTheKeyAndChangeWithIt) {
    LoadedModel model = load(two_dropouts(), kRandomOptions);
    const auto first = masks_of(model, 1);
    ASSERT_EQ(first.size(), 2U);
    EXPECT_NE(first[0], first[1]) << "two call sites, two masks";
    at::rand({100});  // foreign draws change nothing
    EXPECT_EQ(masks_of(model, 1), first);
    EXPECT_NE(masks_of(model, 2), first);
}

TEST(Randomness, SlicesGiveTheMasksOfTheWhole) {
    LoadedModel model = load(two_dropouts(), kRandomOptions);
    const std::string whole = bits_of(run_in_pieces(model, {}, kOnes, 5));
    for (int cut = 1; cut < model.graph.num_ops(); ++cut) {
        ASSERT_TRUE(model.graph.cuts[static_cast<size_t>(cut)].legal);
        EXPECT_EQ(bits_of(run_in_pieces(model, {cut}, kOnes, 5)), whole) << "cut " << cut;
        EXPECT_NE(bits_of(run_in_pieces(model, {cut}, kOnes, 6)), whole) << "cut " << cut;
    }
}

TEST(Randomness, WithoutKeysMasksWouldNotRepeat) {
    // The negative control: the same op called as it is.
    const at::Tensor x = at::ones({2, 64});
    EXPECT_NE(bits_of(at::rand({2, 64})), bits_of(at::rand({2, 64})));
}

TEST(Randomness, EveryIterationOfALoopHasItsOwnMask) {
    ModuleSpec model{"Model", R"JIT(
def forward(self, x):
    made: List[Tensor] = []
    for i in range(x.size(0)):
        made.append(self.d.forward(x))
    return torch.mean(made[0] * 2.0 + made[1]), made
)JIT"};
    model.children = {{"d", dropout()}};
    LoadedModel loaded = load(model, kRandomOptions);
    const int list = loaded.graph.ops[static_cast<size_t>(op_of(loaded.graph, "prim::ListConstruct"))].outputs.at(0);
    const auto masks = [&](uint64_t key) {
        std::vector<std::string> found;
        const c10::IValue made = run_whole(loaded, {list}, kOnes, key).at(0);
        for (const at::Tensor& tensor : made.toTensorVector()) found.push_back(bits_of(tensor));
        return found;
    };
    const auto first = masks(3);
    ASSERT_EQ(first.size(), 2U);
    EXPECT_NE(first[0], first[1]);
    EXPECT_EQ(masks(3), first) << "counts begin anew with every run";
    EXPECT_NE(masks(4), first);
    EXPECT_TRUE(loaded.graph.ops[static_cast<size_t>(op_of(loaded.graph, "prim::Loop"))].random);
}

TEST(Randomness, ARandomOpInABranchIsKeyed) {
    ModuleSpec model{"Model", R"JIT(
def forward(self, x):
    if x.size(0) > 1:
        x = torch.rand_like(x) + x
    return torch.mean(x)
)JIT"};
    LoadedModel loaded = load(model, kRandomOptions);
    const std::string once = bits_of(run_in_pieces(loaded, {}, kOnes, 9));
    EXPECT_EQ(bits_of(run_in_pieces(loaded, {}, kOnes, 9)), once);
    EXPECT_NE(bits_of(run_in_pieces(loaded, {}, kOnes, 10)), once);
}

TEST(Randomness, SitesAreNumberedOverTheWholeGraph) {
    // The same second dropout with and without a first one: another site, another mask.
    ModuleSpec alone{"Model", "def forward(self, x):\n    return torch.mean(self.d2.forward(x))\n"};
    alone.children = {{"d2", dropout()}};
    LoadedModel one = load(alone, kRandomOptions), two = load(two_dropouts(), kRandomOptions);
    EXPECT_EQ(masks_of(one, 1).at(0), masks_of(two, 1).at(0));
    EXPECT_NE(masks_of(one, 1).at(0), masks_of(two, 1).at(1));
}

// They have no tag: what draws is known by its generator.
TEST(Randomness, OpsThatTheDispatcherDoesNotKnowAreKeyedToo) {
    for (const std::string op : {"torch._no_grad_uniform_(n, -1.0, 1.0)", "torch._no_grad_normal_(n, 0.0, 1.0)"}) {
        const ModuleSpec spec{"Model", "def forward(self, x):\n    n = torch.empty_like(x)\n    n = " + op +
                                           "\n    return torch.mean(x + n), n\n"};
        LoadedModel model = load(spec, kRandomOptions);
        const auto first = masks_of(model, 1);
        ASSERT_EQ(first.size(), 1U);
        EXPECT_EQ(masks_of(model, 1), first);
        EXPECT_NE(masks_of(model, 2), first);
    }
}

}  // namespace
}  // namespace vpp
