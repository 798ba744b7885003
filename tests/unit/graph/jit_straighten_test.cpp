// Branches, loops and lists that follow from each other become straight code, and no bit changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/graph/models.hpp"

namespace vpp {
namespace {

using namespace test;
using ::testing::Contains;
using ::testing::Not;

Graph straight_exactly(const std::string& code) {
    return load_exactly({"Model", code, {{"w", weight({4, 4})}}}, options_for({floats("x", {4})}),
                        {{"x", values({2, 4})}});
}

void expect_straight(const std::string& code) {
    const Graph graph = straight_exactly(code);
    for (const char* gone : {"prim::Loop ", "prim::If ", "aten::append ", "aten::pop ", "aten::len ", "aten::slice "}) {
        EXPECT_THAT(labels_of(graph), Not(Contains(gone))) << code;
    }
    EXPECT_EQ(graph.num_legal_cuts(), graph.num_ops() - 1) << code;
}

TEST(Straighten, ALoopOverAListThatGrew) {
    expect_straight(R"JIT(
def forward(self, x):
    outs: List[Tensor] = []
    for i in range(3):
        x = torch.relu(torch.mm(x, self.w))
        outs.append(x)
    twice = [out * 2. for out in outs]
    for out in twice:
        x = torch.relu_(x + out)
    return torch.mean(x)
)JIT");
}

TEST(Straighten, ADecoderWithSkipsAsThoseOfSegmentation) {
    expect_straight(R"JIT(
def join(self, x, skip: Optional[Tensor]):
    y = torch.mm(x, self.w)
    if skip is not None:
        y = y + skip
    return torch.relu_(y)

def forward(self, x):
    features: List[Tensor] = []
    for i in range(4):
        x = torch.tanh(torch.mm(x, self.w))
        features.append(x)
    features = features[1:]
    features = features[::-1]
    y = features[0]
    skips = features[1:]
    for i in range(len(skips) + 1):
        y = self.join(y, skips[i] if i < len(skips) else None)
    return torch.mean(y)
)JIT");
}

TEST(Straighten, AListThatGrowsByAnother) {
    expect_straight(R"JIT(
def forward(self, x):
    first: List[Tensor] = []
    for i in range(2):
        first.append(torch.sin(x) * i)
    second: List[Tensor] = []
    for one in first:
        second.append(torch.exp(one))
        if len(second) == len(first):
            second.append(x)
    third: List[Tensor] = []
    for k in range(len(second)):
        third.append(second[k] + second.pop(0))
        second.insert(0, third[0])
    return torch.mean(torch.cat(third, 1))
)JIT");
}

TEST(Straighten, ALoopOverWhatABranchFillsStays) {
    const Graph graph = straight_exactly(R"JIT(
def forward(self, x):
    outs: List[Tensor] = [x]
    if bool(x.sum() > 0.):
        outs.append(torch.exp(x))
    for out in outs:
        x = x + torch.sin(out)
    return torch.mean(torch.mm(x, self.w))
)JIT");
    EXPECT_THAT(labels_of(graph), Contains("prim::Loop "));
}

}  // namespace
}  // namespace vpp
