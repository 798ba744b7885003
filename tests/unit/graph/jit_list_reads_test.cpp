// What is read from lists that stay as they were written down: elements, lengths, parts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/graph/models.hpp"

namespace vpp {
namespace {

using namespace test;
using ::testing::Contains;
using ::testing::Not;

Graph read_exactly(const std::string& code) {
    return load_exactly({"Model", code}, options_for({floats("x", {4})}), {{"x", values({2, 4})}});
}

constexpr const char* kFiveOuts =
    "def forward(self, x):\n"
    "    outs = [torch.exp(x), torch.cos(x), torch.sin(x), torch.tanh(x), torch.relu(x)]\n";

TEST(ListReads, ElementsAndLengthsAreKnown) {
    const Graph graph = read_exactly(kFiveOuts + std::string(R"JIT(
    y = outs[1] * outs[-1] * float(len(outs))
    if len(outs) > 3:
        y = torch.sin(y)
    return torch.mean(y)
)JIT"));
    for (const char* gone : {"prim::ListConstruct ", "aten::__getitem__ ", "aten::len ", "prim::If "}) {
        EXPECT_THAT(labels_of(graph), Not(Contains(gone)));
    }
    EXPECT_EQ(graph.num_legal_cuts(), graph.num_ops() - 1);
}

TEST(ListReads, PartsAreTheSameAsLibTorchTakes) {
    for (const char* part : {"1:", ":2", "::2", "::-1", "-2:", ":-1", "3:0:-1", "4:1:-2", "-9:9", "9:-9:-3", "1:4:2"}) {
        const Graph graph = read_exactly(kFiveOuts + std::string("    part = outs[") + part +
                                         "]\n    return torch.mean(torch.cat(part, 1) * len(part) + part[0].sum())\n");
        EXPECT_THAT(labels_of(graph), Not(Contains("aten::slice "))) << part;
        EXPECT_THAT(labels_of(graph), Not(Contains("aten::__getitem__ "))) << part;
    }
}

TEST(ListReads, APartIsAListOfItsOwn) {
    const Graph graph = read_exactly(kFiveOuts + std::string(R"JIT(
    part = outs[2:2]
    for out in outs[:2]:
        part.append(out * 0.5)
    part[0] = part[1] + outs[0]
    return torch.mean(torch.cat(part + outs, 1))
)JIT"));
    EXPECT_THAT(labels_of(graph), Not(Contains("aten::_set_item ")));
    EXPECT_EQ(graph.num_legal_cuts(), graph.num_ops() - 1);
}

TEST(ListReads, AllElementsAreTakenAtOnce) {
    const Graph graph = read_exactly(kFiveOuts + std::string(R"JIT(
    a, b, c = outs[-3:]
    return torch.mean(torch.relu_(a * b) + c)
)JIT"));
    EXPECT_THAT(labels_of(graph), Not(Contains("prim::ListUnpack ")));
    EXPECT_EQ(graph.num_legal_cuts(), graph.num_ops() - 1);
}

TEST(ListReads, WhatFollowsTheDataStays) {
    const Graph graph = read_exactly(kFiveOuts + std::string(R"JIT(
    n = x.size(0) - 1
    part = outs[n:]
    return torch.mean(outs[n] + part[0] + outs[::n][0])
)JIT"));
    EXPECT_THAT(labels_of(graph), Contains("aten::__getitem__ "));
    EXPECT_THAT(labels_of(graph), Contains("aten::slice "));
}

TEST(ListReads, AListThatAnotherNameChangesIsReadWhereItIs) {
    const Graph graph = read_exactly(R"JIT(
def forward(self, x):
    outs = [torch.exp(x), torch.cos(x)]
    held = [outs]
    n = x.size(0) - 2
    held[n][0] = torch.sin(x)
    held[n].append(torch.tanh(x))
    more = [torch.relu(x), x]
    return torch.mean(outs[0] * len(outs) + outs[1:][1] + more[1])
)JIT");
    EXPECT_THAT(labels_of(graph), Contains("aten::_set_item "));
    EXPECT_THAT(labels_of(graph), Contains("aten::slice "));
}

// LibTorch takes such writes for dead where it removes what nobody uses.
TEST(ListReads, ElementsThatAreWrittenStayWrittenForWhoReadsTheList) {
    const Graph element = read_exactly(R"JIT(
def forward(self, x):
    outs = [torch.exp(x), torch.cos(x)]
    torch.mul_(outs[1], 0.5)
    torch.append(outs, torch.sin(x))
    return torch.mean(torch.cat(outs, 1))
)JIT");
    EXPECT_THAT(labels_of(element), Contains("aten::mul_ "));
    const Graph part = read_exactly(kFiveOuts + std::string(R"JIT(
    for out in outs[1:3]:
        torch.mul_(out, 0.5)
    return torch.mean(torch.cat(outs, 1))
)JIT"));
    EXPECT_THAT(labels_of(part), Contains("aten::mul_ "));
}

}  // namespace
}  // namespace vpp
