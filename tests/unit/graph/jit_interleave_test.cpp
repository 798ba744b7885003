// Calls of one module, side by side: which models that changes, that no bit changes with it, and where cuts may lie.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir_text.hpp"
#include "unit/graph/models.hpp"

namespace vpp {
namespace {

using namespace test;
using ::testing::ElementsAre;

const TorchScriptOptions kInterleaveOptions = options_for({floats("x", {4})}, 3);
const at::Tensor kSamples = values({3, 4}, 2);

/// enc: a layer, batch norm that is activated in place, and the same again.
ModuleSpec siamese(const std::string& forward) {
    const auto layer = [](int seed) {
        ModuleSpec spec{"Layer", "def forward(self, x):\n    return torch.relu_(self.bn.forward(self.l.forward(x)))\n"};
        spec.children = {{"l", linear(4, 4, seed)}, {"bn", batch_norm(4)}};
        return spec;
    };
    ModuleSpec model{"Model", forward, {{"w", weight({4, 4})}}};
    model.children = {{"enc", sequential({layer(0), layer(1)})}};
    return model;
}

const char* const kTwoViews = R"JIT(
def forward(self, x):
    a = self.enc.forward(x)
    b = self.enc.forward(torch.sin(x))
    return torch.mean(torch.mm(a * b, self.w))
)JIT";

Graph interleaved_exactly(const ModuleSpec& spec) {
    return load_exactly(spec, kInterleaveOptions, {{"x", kSamples}});
}

TEST(InterleaveCalls, LayersOfBothCallsAreBesideEachOther) {
    const Graph graph = interleaved_exactly(siamese(kTwoViews));
    EXPECT_THAT(labels_of(graph),
                ElementsAre("aten::linear enc.0.l", "aten::sin ", "aten::linear enc.0.l", "aten::add_ enc.0.bn",
                            "aten::add_ enc.0.bn", "aten::batch_norm enc.0.bn", "aten::batch_norm enc.0.bn",
                            "aten::relu_ enc.0", "aten::relu_ enc.0", "aten::linear enc.1.l", "aten::linear enc.1.l",
                            "aten::add_ enc.1.bn", "aten::add_ enc.1.bn", "aten::batch_norm enc.1.bn",
                            "aten::batch_norm enc.1.bn", "aten::relu_ enc.1", "aten::relu_ enc.1", "aten::mul ",
                            "aten::mm ", "aten::mean "));
    const int second_layer = op_of(graph, "aten::linear", 3);
    EXPECT_TRUE(graph.cuts[static_cast<size_t>(second_layer)].legal) << "no batch norm is on both sides";
    EXPECT_FALSE(graph.cuts[static_cast<size_t>(op_of(graph, "aten::batch_norm") + 1)].legal)
        << "one call's batch norm before it, the other's behind it";
}

TEST(InterleaveCalls, EvaluationHasTheSameOrder) {
    TorchScriptOptions evaluation = kInterleaveOptions;
    evaluation.training = false;
    const Graph graph = load(siamese(kTwoViews), evaluation).graph;
    EXPECT_EQ(op_of(graph, "aten::linear", 2), 2) << "behind the other call's, not behind the whole call";
}

TEST(InterleaveCalls, DeferredStatisticsGoTogetherToo) {
    TorchScriptOptions deferred = kInterleaveOptions;
    deferred.deferred_batch_norm = true;
    const Graph graph = load(siamese(kTwoViews), deferred).graph;
    EXPECT_TRUE(graph.cuts[static_cast<size_t>(op_of(graph, "aten::linear", 3))].legal);
}

TEST(InterleaveCalls, MoreCallsAndWhatFollowsEach) {
    const Graph graph = interleaved_exactly(siamese(R"JIT(
def forward(self, x):
    a = torch.tanh(self.enc.forward(x))
    b = torch.cos(self.enc.forward(torch.sin(x)))
    c = torch.neg(self.enc.forward(torch.abs(x)))
    return torch.mean(a * b * c)
)JIT"));
    EXPECT_EQ(op_of(graph, "aten::tanh"), graph.num_ops() - 6) << "what follows a call waits for the other calls";
    EXPECT_TRUE(graph.cuts[static_cast<size_t>(op_of(graph, "aten::linear", 5))].legal);
}

void expect_order_as_written(const ModuleSpec& spec) {
    const Graph graph = interleaved_exactly(spec);
    const int first_relu = op_of(graph, "aten::relu_");
    EXPECT_GT(op_of(graph, "aten::linear", op_of(graph, "aten::linear") + 1), first_relu);
}

TEST(InterleaveCalls, ACallThatUsesWhatAnotherMadeStaysBehindIt) {
    expect_order_as_written(siamese(R"JIT(
def forward(self, x):
    return torch.mean(torch.mm(self.enc.forward(torch.sin(self.enc.forward(x))), self.w))
)JIT"));
}

TEST(InterleaveCalls, WithoutBuffersNothingChanges) {
    ModuleSpec model{"Model", kTwoViews, {{"w", weight({4, 4})}}};
    ModuleSpec activated{"Layer", "def forward(self, x):\n    return torch.relu_(self.l.forward(x))\n"};
    activated.children = {{"l", linear(4, 4)}};
    model.children = {{"enc", activated}};
    expect_order_as_written(model);
}

TEST(InterleaveCalls, InnerGradientsKeepTheWholeModelAsWritten) {
    expect_order_as_written(siamese(R"JIT(
def forward(self, x):
    a = self.enc.forward(x)
    b = self.enc.forward(torch.sin(x))
    g = torch.autograd.grad([torch.sum(a)], [self.w], None, True, False, True)[0]
    assert g is None
    return torch.mean(torch.mm(a * b, self.w))
)JIT"));
}

TEST(InterleaveCalls, AWriteBetweenTheCallsStaysBetweenThem) {
    interleaved_exactly(siamese(R"JIT(
def forward(self, x):
    h = torch.sin(x)
    a = self.enc.forward(h)
    kept = h * 2.
    h.add_(1.)
    b = self.enc.forward(h)
    return torch.mean(torch.mm(a * b + kept, self.w))
)JIT"));
}

TEST(InterleaveCalls, AWriteThroughAViewThatNoSchemaTellsStaysInItsPlace) {
    interleaved_exactly(siamese(R"JIT(
def forward(self, x):
    h = torch.sin(x)
    view = torch.einsum("ij->ji", [h])
    a = self.enc.forward(h)
    kept = h * 2.
    view = view.add_(1.)
    b = self.enc.forward(torch.cos(h))
    return torch.mean(torch.mm(a * b + kept, self.w)) + torch.mean(view)
)JIT"));
}

constexpr const char* kThreeUses = R"IR(
graph(%x : Tensor, %w : Tensor, %m : Tensor):
  %h : Tensor = aten::tanh(%w)
  %a1 : Tensor = aten::div(%x, %m)
  %a2 : Tensor = aten::dropout(%a1, %p, %t)
  %a3 : Tensor = aten::mul(%a2, %h)
  %a4 : Tensor = aten::dropout(%a3, %p, %t)
  %u : Tensor = aten::exp(%h)
  %y : Tensor = aten::sin(%x)
  %b1 : Tensor = aten::div(%y, %m)
  %b2 : Tensor = aten::dropout(%b1, %p, %t)
  %b3 : Tensor = aten::mul(%b2, %h)
  %b4 : Tensor = aten::dropout(%b3, %p, %t)
  return (%a4, %b4, %u))IR";

/// x -> dropout(dropout(x / m) * h) in 'enc', called twice; h is trained and used between the calls too.
test::ParsedGraph three_uses(bool trained) {
    const std::string constants =
        "  %p : float = prim::Constant[value=0.5]()\n  %t : bool = prim::Constant[value=1]()\n";
    std::string text = kThreeUses;
    text.insert(text.find("  %h"), constants);
    test::ParsedGraph parsed = test::parse_graph(text);
    const auto inputs = parsed.jit.graph->inputs();
    parsed.jit.parameters = {{"w", {}, weight({4}).set_requires_grad(trained), false, inputs[1]},
                             {"m", {}, values({4}), true, inputs[2]}};
    for (const auto& [name, value] : parsed.values) {
        value->setDebugName(name);
        if (name.size() == 2) set_module(value->node(), "enc");
    }
    interleave_calls(parsed.jit);
    return parsed;
}

std::vector<std::string> made_in_order(const JitGraph& jit) {
    std::vector<std::string> made;
    for (const JitOp& op : jit.ops) made.push_back(op.node->output()->debugName());
    return made;
}

TEST(InterleaveCalls, PartsOfAGradientAreSummedInTheOrderWritten) {
    EXPECT_THAT(made_in_order(three_uses(false).jit),
                ElementsAre("h", "a1", "y", "b1", "a2", "b2", "a3", "b3", "a4", "b4", "u"));
    EXPECT_THAT(made_in_order(three_uses(true).jit),
                ElementsAre("h", "a1", "y", "b1", "a2", "b2", "a3", "u", "b3", "a4", "b4"))
        << "u uses h between the two others";
}

TEST(InterleaveCalls, CallSitesAreNumberedAsWritten) {
    test::ParsedGraph parsed = three_uses(true);
    insert_reseeds(parsed.jit);
    std::vector<int64_t> sites;
    for (const JitOp& op : parsed.jit.ops) {
        if (op.random) sites.push_back(op.random_site);
    }
    EXPECT_THAT(sites, ElementsAre(0, 2, 1, 3)) << "the first call has the first two";
}

TEST(InterleaveCalls, TheGraphItselfHasTheOrderOfTheOps) {
    const test::ParsedGraph parsed = three_uses(true);
    parsed.jit.graph->lint();
    std::vector<std::string> made;
    for (const torch::jit::Node* node : parsed.jit.graph->nodes()) {
        if (node->kind() != torch::jit::prim::Constant) made.push_back(node->output()->debugName());
    }
    EXPECT_EQ(made, made_in_order(parsed.jit));
}

// Code that goes straight on, and changes what holds no tensors between the calls.
TEST(InterleaveCalls, ListsOfNumbersAreReadAsTheyAreAtTheTime) {
    for (const std::string change : {"scales.append(0.5)", "scales.insert(0, 0.5)", "scales[0] = 0.5"}) {
        interleaved_exactly(siamese(R"JIT(
def forward(self, x):
    a = self.enc.forward(x)
    scales = [3.0]
    if x.dim() == 2:
        )JIT" + change + R"JIT(
    b = self.enc.forward(torch.sin(x) * scales[-1] * scales[0])
    return torch.mean(torch.mm(a * b, self.w))
)JIT"));
    }
}

}  // namespace
}  // namespace vpp
