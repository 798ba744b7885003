// Loops that run a known number of times: which they are, that no bit changes, and that their ops are cut as all
// others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir_text.hpp"
#include "unit/graph/models.hpp"

namespace vpp {
namespace {

using namespace test;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

const TorchScriptOptions kUnrollOptions = options_for({floats("x", {4})});

Graph unrolled_exactly(const std::string& code) {
    return load_exactly({"Model", code, {{"w", weight({4, 4})}}}, kUnrollOptions, {{"x", values({2, 4})}});
}

TEST(UnrollLoops, ABlockThatIsAppliedThreeTimes) {
    const Graph graph = unrolled_exactly(R"JIT(
def forward(self, x):
    for i in range(3):
        x = torch.tanh(torch.mm(x, self.w) + i)
    return torch.mean(x)
)JIT");
    EXPECT_THAT(labels_of(graph), ElementsAre("aten::mm ", "aten::add ", "aten::tanh ", "aten::mm ", "aten::add ",
                                              "aten::tanh ", "aten::mm ", "aten::add ", "aten::tanh ", "aten::mean "));
    EXPECT_EQ(graph.num_legal_cuts(), graph.num_ops() - 1);
}

TEST(UnrollLoops, LoopsInLoopsAndListsThatGrowInThem) {
    const Graph graph = unrolled_exactly(R"JIT(
def forward(self, x):
    outs: List[Tensor] = []
    for i in range(2):
        for j in range(i + 1):
            x = torch.sin(torch.mm(x, self.w) + j)
        outs.append(torch.exp(x))
    return torch.mean(torch.cat(outs, 1))
)JIT");
    EXPECT_THAT(labels_of(graph), Not(Contains("prim::Loop ")));
    EXPECT_EQ(graph.num_legal_cuts(), graph.num_ops() - 1);
}

TEST(UnrollLoops, ALoopThatRunsNotAtAllIsGone) {
    const Graph graph = unrolled_exactly(R"JIT(
def forward(self, x):
    for i in range(0):
        x = torch.exp(x)
    return torch.mean(torch.mm(x, self.w))
)JIT");
    EXPECT_THAT(labels_of(graph), ElementsAre("aten::mm ", "aten::mean "));
}

TEST(UnrollLoops, WhatFollowsTheDataStays) {
    for (const char* loop : {"for i in range(x.size(0)):\n        x = torch.sin(x)",
                             "for i in range(3):\n        if bool(x.sum() > 100.):\n            break\n"
                             "        x = torch.sin(x)",
                             "while bool(x.sum() > 1.):\n        x = x * 0.5"}) {
        const std::string code =
            std::string("def forward(self, x):\n    ") + loop + "\n    return torch.mean(torch.mm(x, self.w))\n";
        EXPECT_THAT(labels_of(unrolled_exactly(code)), Contains("prim::Loop ")) << code;
    }
}

TEST(UnrollLoops, ALongOneStays) {
    const std::string text = R"IR(
graph(%x : Tensor):
  %n : int = prim::Constant[value=COUNT]()
  %t : bool = prim::Constant[value=1]()
  %y : Tensor = prim::Loop(%n, %t, %x)
    block0(%i : int, %z : Tensor):
      %s : Tensor = aten::sin(%z)
      %e : Tensor = aten::exp(%s)
      -> (%t, %e)
  return (%y))IR";
    for (const auto& [count, nodes] : {std::pair("5000", 10000U), std::pair("5001", 1U)}) {
        std::string with_count = text;
        test::ParsedGraph parsed = test::parse_graph(with_count.replace(with_count.find("COUNT"), 5, count));
        unroll_loops(parsed.jit);
        list_ops(parsed.jit);
        EXPECT_EQ(parsed.jit.ops.size(), nodes) << count;
    }
    // What was unrolled before counts too.
    std::string exactly_full = text;
    test::ParsedGraph parsed = test::parse_graph(exactly_full.replace(exactly_full.find("COUNT"), 5, "5000"));
    parsed.jit.num_unrolled = 1;
    unroll_loops(parsed.jit);
    list_ops(parsed.jit);
    EXPECT_EQ(parsed.jit.ops.size(), 1U);
}

}  // namespace
}  // namespace vpp
