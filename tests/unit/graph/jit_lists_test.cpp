// Growing lists become values: which appends are replaced, and that the elements stay what they were.
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/graph/models.hpp"

namespace vpp {
namespace {

using namespace test;

const TorchScriptOptions kListOptions = options_for({floats("x", {4})});

int count_of(const Graph& graph, const std::string& kind) {
    int count = 0;
    for (const GraphOp& op : graph.ops) count += op.kind == kind;
    return count;
}

std::string list_loss_bits(LoadedModel& model) {
    return bits_of(run_in_pieces(model, {}, {{"x", values({2, 4})}}));
}

TEST(Lists, AppendsAtTheTopLevelAreReplacedInOrder) {
    LoadedModel model = load({"Model", R"JIT(
def forward(self, x):
    outs = [torch.exp(x)]
    h = torch.tanh(x)
    outs.append(h)
    first = torch.cat(outs, 1)
    outs.append(torch.sin(h))
    return torch.mean(first) + torch.mean(outs[2] * outs[0]) * len(outs)
)JIT"},
                             kListOptions);
    EXPECT_EQ(count_of(model.graph, "aten::append"), 0);
    const at::Tensor x = values({2, 4});
    const at::Tensor a = x.exp(), b = x.tanh(), c = b.sin();
    const double expected = (a.sum() + b.sum()).item<double>() / 16 + (c * a).mean().item<double>() * 3;
    EXPECT_NEAR(run_in_pieces(model, {}, {{"x", x}}).item<double>(), expected, 1e-6);
}

TEST(Lists, AListThatAnotherNameHoldsIsLeftAlone) {
    // `twice` holds the list itself; an append must be seen through both names.
    LoadedModel model = load({"Model", R"JIT(
def forward(self, x):
    outs = [torch.exp(x)]
    twice = [outs, outs]
    outs.append(torch.tanh(x))
    return torch.mean(twice[0][1]) + torch.mean(twice[1][1])
)JIT"},
                             kListOptions);
    EXPECT_EQ(count_of(model.graph, "aten::append"), 1);
    EXPECT_NO_THROW(list_loss_bits(model));
}

TEST(Lists, AppendsInsideControlFlowAreLeftAlone) {
    LoadedModel model = load({"Model", R"JIT(
def forward(self, x):
    outs = [torch.exp(x)]
    outs.append(torch.cos(x))
    for i in range(x.size(0)):
        outs.append(torch.tanh(x) * i)
    outs.append(torch.sin(x))
    return torch.mean(outs[4]) + torch.mean(outs[3])
)JIT"},
                             kListOptions);
    const at::Tensor x = values({2, 4});
    EXPECT_NEAR(run_in_pieces(model, {}, {{"x", x}}).item<double>(),
                x.sin().mean().item<double>() + x.tanh().mean().item<double>(), 1e-6);
}

TEST(Lists, OtherWritesKeepAList) {
    LoadedModel model = load({"Model", R"JIT(
def forward(self, x):
    outs = [torch.exp(x), torch.cos(x)]
    outs.append(torch.tanh(x))
    y = outs.pop()
    outs[0] = y
    return torch.mean(outs[0]) + torch.mean(outs[1])
)JIT"},
                             kListOptions);
    const at::Tensor x = values({2, 4});
    EXPECT_NEAR(run_in_pieces(model, {}, {{"x", x}}).item<double>(),
                x.tanh().mean().item<double>() + x.cos().mean().item<double>(), 1e-6);
    EXPECT_EQ(count_of(model.graph, "aten::append"), 1);
}

}  // namespace
}  // namespace vpp
