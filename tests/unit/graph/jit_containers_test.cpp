// Lists and dicts that change become values: which changes are followed, and that what is read stays what it was.
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

Graph with_exact_lists(const std::string& code) {
    return load_exactly({"Model", code}, kListOptions, {{"x", values({2, 4})}});
}

void expect_settled(const std::string& code) {
    const Graph graph = with_exact_lists(code);
    for (const char* change : {"aten::append", "aten::_set_item", "aten::pop", "aten::insert", "aten::reverse",
                               "aten::Delete", "aten::update"}) {
        EXPECT_EQ(count_of(graph, change), 0) << code;
    }
    EXPECT_EQ(graph.num_legal_cuts(), graph.num_ops() - 1) << code;
}

void expect_kept(const std::string& code, const char* change, int times = 1) {
    EXPECT_EQ(count_of(with_exact_lists(code), change), times) << code;
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

TEST(Lists, ListsThatAreJoinedAreLists) {
    LoadedModel model = load({"Model", R"JIT(
def forward(self, x):
    outs = [torch.exp(x)]
    more = [torch.tanh(x), torch.sin(x)]
    outs += more
    more.append(torch.cos(x))
    outs.extend(more)
    outs.append(torch.relu(x))
    both = outs + [x] + more
    both.append(outs[5])
    return torch.mean(both[6] * both[9]) + torch.mean(torch.cat(both, 1)) * len(both)
)JIT"},
                             kListOptions);
    for (const char* gone : {"aten::append", "aten::add_", "aten::extend"}) {
        EXPECT_EQ(count_of(model.graph, gone), 0) << gone;
    }
    EXPECT_EQ(model.graph.num_legal_cuts(), model.graph.num_ops() - 1);
    const at::Tensor x = values({2, 4});
    const std::vector<at::Tensor> outs{x.exp(), x.tanh(), x.sin(), x.tanh(), x.sin(), x.cos(), x.relu()};
    // both: the seven, x, tanh, sin, cos, and the cos among the seven
    double sum = (x + x.tanh() + x.sin() + x.cos() * 2).sum().item<double>();
    for (const at::Tensor& out : outs) sum += out.sum().item<double>();
    const double expected = (outs[6] * x.sin()).mean().item<double>() + sum / (8 * 12) * 12;
    EXPECT_NEAR(run_in_pieces(model, {}, {{"x", x}}).item<double>(), expected, 1e-5);
}

TEST(Lists, AListThatAnotherChangesIsJoinedAsItIs) {
    expect_kept(R"JIT(
def forward(self, x):
    more = [torch.exp(x)]
    held = [more]
    outs = [torch.sin(x)]
    held[x.size(0) - 2].append(torch.tanh(x))
    outs += more
    both = [torch.relu(x)] + more
    return torch.mean(torch.cat(outs, 1)) + torch.mean(both[1] * both[2])
)JIT",
                "aten::append");
}

TEST(Lists, ListsThatDoubleStayWhatTheyAre) {
    std::string code = "def forward(self, x):\n    outs = [torch.exp(x)]\n";
    for (int k = 0; k < 10; ++k) code += "    outs = outs + outs\n";
    EXPECT_GT(count_of(with_exact_lists(code + "    return torch.mean(outs[0])\n"), "aten::add"), 0);
}

TEST(Lists, TheCheckForAnAbsentListFoldsAway) {
    // As in DLA: `children: Optional[List[Tensor]] = None`, and the caller gives one.
    const char* code = R"JIT(
def join(self, x, children: Optional[List[Tensor]]):
    if children is None:
        known: List[Tensor] = []
    else:
        known = children
    known.append(x)
    return torch.cat(known, 1)

def forward(self, x):
    h = torch.exp(x)
    deep = self.join(torch.tanh(h), [h])
    return torch.mean(torch.relu_(deep)) + torch.mean(h)
)JIT";
    expect_settled(code);
    EXPECT_EQ(count_of(with_exact_lists(code), "prim::If"), 0);
}

TEST(Lists, AListThatAnotherNameHoldsIsLeftAlone) {
    // `twice` holds the list itself; an append must be seen through both names.
    LoadedModel model = load({"Model", R"JIT(
def forward(self, x):
    outs = [torch.exp(x)]
    twice = [outs, outs]
    outs.append(torch.tanh(x))
    n = x.size(0) - 1
    return torch.mean(twice[0][1]) + torch.mean(twice[n][1])
)JIT"},
                             kListOptions);
    EXPECT_EQ(count_of(model.graph, "aten::append"), 1);
    EXPECT_NO_THROW(run_in_pieces(model, {}, {{"x", values({2, 4})}}));
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

TEST(Lists, AListThatABranchMakesIsWrittenDownThere) {
    // As nn.MultiheadAttention does with a batch first: `[y.transpose(0, 1) for y in (query, key)]`.
    const char* code = R"JIT(
def forward(self, x):
    h = torch.tanh(x)
    if bool(torch.gt(torch.sum(x), 0)):
        parts = [torch.exp(h)]
        parts.append(h)
        g, second = parts
    else:
        g = torch.sin(h)
    return torch.mean(g * h)
)JIT";
    expect_settled(code);
    EXPECT_EQ(count_of(with_exact_lists(code), "prim::If"), 1);
}

TEST(Lists, AListThatABranchGivesHoldsWhatItPutThere) {
    const std::string code = R"JIT(
def forward(self, x):
    h = torch.tanh(x)
    if bool(torch.gt(torch.sum(x), SUM)):
        parts = [torch.exp(h)]
        parts.append(h * 2)
        parts[0] = parts[1] * 0.5
    else:
        parts = [h, torch.sin(h)]
        for k in range(x.size(0)):
            more = [h]
            more.append(parts[-1] * k)
            parts.append(more[0] + more.pop())
    parts.append(torch.cos(x))
    return torch.mean(torch.cat(parts, 1)) * len(parts)
)JIT";
    for (const char* sum : {"1000", "-1000"}) {
        const Graph graph = with_exact_lists(std::string(code).replace(code.find("SUM"), 3, sum));
        EXPECT_EQ(count_of(graph, "aten::append"), 1) << "what comes out of a branch is not known";
    }
}

TEST(Lists, OtherWritesKeepAList) {
    LoadedModel model = load({"Model", R"JIT(
def forward(self, x):
    outs = [torch.exp(x), torch.cos(x)]
    outs.append(torch.tanh(x))
    outs.clear()
    outs.append(torch.sin(x))
    outs[0] = torch.tanh(outs[0])
    return torch.mean(outs[0])
)JIT"},
                             kListOptions);
    const at::Tensor x = values({2, 4});
    EXPECT_NEAR(run_in_pieces(model, {}, {{"x", x}}).item<double>(), x.sin().tanh().mean().item<double>(), 1e-6);
    EXPECT_EQ(count_of(model.graph, "aten::append"), 1) << "up to clear() it is known what is in it";
    EXPECT_EQ(count_of(model.graph, "aten::_set_item"), 1);
}

TEST(Lists, SkipsThatAreTakenFromTheEnd) {
    // As in the usual scripted U-Net.
    expect_settled(R"JIT(
def forward(self, x):
    skips: List[Tensor] = []
    for i in range(3):
        skips.append(x)
        x = torch.relu(torch.sin(x) + i)
    for i in range(3):
        x = torch.relu_(torch.cos(x) + skips.pop())
    return torch.mean(x)
)JIT");
}

TEST(Lists, ListsThatAreTurnedRoundAndFilledFromTheFront) {
    expect_settled(R"JIT(
def forward(self, x):
    held = [torch.exp(x), torch.cos(x)]
    held.insert(0, torch.sin(x))
    before = torch.cat(held, 1)
    held.reverse()
    held.insert(-1, held[0] * held[2])
    held.insert(9, torch.tanh(held[1]))
    del held[1]
    first = held.pop(0)
    held.append(held.pop(-2))
    return torch.mean(before) + torch.mean(torch.cat(held, 1)) * torch.mean(first * held[0]) * len(held)
)JIT");
}

TEST(Lists, AListThatIsTakenOutIsTheOneThatWasPutIn) {
    // The inner list changes after it was put in, so the outer one must not be a copy.
    expect_kept(R"JIT(
def forward(self, x):
    inner = [torch.exp(x)]
    outer = [inner, [x]]
    outer.reverse()
    again = outer.pop()
    again.append(torch.cos(x))
    return torch.mean(inner[0] * inner[1]) + torch.mean(torch.cat(again, 1))
)JIT",
                "aten::pop", 0);
}

TEST(Lists, WhatIsTakenOutWhereTheDataSaysSoStays) {
    expect_kept(R"JIT(
def forward(self, x):
    held = [torch.exp(x), torch.cos(x)]
    y = held.pop(x.size(0) - 2)
    held.reverse()
    return torch.mean(held[0] * y)
)JIT",
                "aten::pop");
    expect_kept(R"JIT(
def forward(self, x):
    held = [torch.exp(x), torch.cos(x)]
    both = (held, x)
    held.reverse()
    return torch.mean(both[0][0] * x + held[1])
)JIT",
                "aten::reverse", 0);
    expect_kept(R"JIT(
def forward(self, x):
    held = [torch.exp(x), torch.cos(x)]
    both = [held, held]
    held.reverse()
    return torch.mean(both[x.size(0) - 2][0] * x + held[1])
)JIT",
                "aten::reverse");
}

TEST(Containers, ADictThatIsFilledIsGone) {
    expect_settled(R"JIT(
def forward(self, x):
    made: Dict[str, Tensor] = {}
    made["a"] = torch.tanh(x)
    made["b"] = torch.sin(x)
    made["a"] = torch.exp(made["a"])
    y = made["a"] * 3.
    if "c" in made:
        y = y * 100.
    if "b" in made:
        y = y * made["b"]
    return torch.mean(y) * len(made)
)JIT");
}

TEST(Containers, KeysThatAreFormattedOrNumbersAreKnown) {
    for (const std::string key : {"\"aux{}\".format(i)", "\"aux%d\" % i", "\"aux\" + str(i)", "i"}) {
        const std::string type = key == "i" ? "int" : "str";
        expect_settled("def forward(self, x):\n    i = 1\n    made: Dict[" + type + ", Tensor] = {}\n    made[" + key +
                       "] = torch.tanh(x)\n    i = i + 1\n    made[" + key + "] = torch.sin(made[" +
                       (key == "i" ? "1" : "\"aux1\"") + "])\n    return torch.mean(made[" + key +
                       "] * x) * len(made)\n");
    }
}

TEST(Containers, WhatADictIsUpdatedWithIsInIt) {
    expect_settled(R"JIT(
def forward(self, x):
    made: Dict[str, Tensor] = {"a": torch.tanh(x)}
    made.update({"b": torch.sin(x), "a": torch.exp(made["a"])})
    return torch.mean(made["a"] * made["b"]) * len(made)
)JIT");
    expect_kept(R"JIT(
def forward(self, x):
    made: Dict[str, Tensor] = {"a": torch.tanh(x)}
    more = {"b": torch.sin(x)}
    made.update(more)
    more["b"] = torch.exp(more["b"])
    return torch.mean(made["a"] * made["b"] * more["b"])
)JIT",
                "aten::update");
}

TEST(Containers, KeysThatAreTakenOutAreGone) {
    expect_settled(R"JIT(
def forward(self, x):
    made = {"a": torch.tanh(x), "b": torch.sin(x)}
    y = made.pop("a") + made.pop("c", x)
    made["a"] = torch.exp(y)
    made["d"] = torch.cos(y)
    del made["b"]
    for name, value in made.items():
        y = y * 2. + value
    return torch.mean(y) * len(made)
)JIT");
}

TEST(Containers, ADictThatAFunctionGivesIsGone) {
    expect_settled(R"JIT(
def features(self, x: Tensor) -> Dict[str, Tensor]:
    made = {"low": torch.cos(x)}
    made["high"] = torch.tanh(x)
    return made
def forward(self, x):
    made = self.features(x)
    result: Dict[str, Tensor] = {}
    result["out"] = torch.sin(made["low"])
    result["aux"] = torch.exp(made["high"])
    return torch.mean(result["out"] * result["aux"])
)JIT");
}

TEST(Containers, ElementsThatAreSetAreReadAtTheirPlaces) {
    expect_settled(R"JIT(
def forward(self, x):
    held = [torch.exp(x), torch.cos(x), x]
    held[0] = torch.tanh(held[0])
    held[-1] = held[0] * held[1]
    held.append(torch.sin(held[2]))
    a, b, c, d = held
    return torch.mean(torch.cat(held, 1)) + torch.mean(a * b + c * held[-1])
)JIT");
}

TEST(Containers, OpsInsideOfBranchesAndLoopsReadWhatIsInIt) {
    expect_settled(R"JIT(
def forward(self, x):
    held = [torch.exp(x)]
    held.append(torch.cos(x))
    y = x
    if x.size(0) > 1:
        y = torch.cat(held, 0)
    held[0] = torch.sin(x)
    for i in range(x.size(1)):
        y = y + held[i % 2].sum() * len(held)
    return torch.mean(y)
)JIT");
}

TEST(Containers, ADictKeepsTheOrderOfItsKeys) {
    expect_settled(R"JIT(
def forward(self, x):
    made: Dict[str, Tensor] = {}
    made["b"] = torch.tanh(x)
    made["a"] = torch.sin(x)
    made["b"] = torch.exp(x)
    y = x
    for name, value in made.items():
        y = y * 2. + value
    return torch.mean(y)
)JIT");
}

TEST(Containers, WhatHoldsAListSeesLaterChanges) {
    expect_kept(R"JIT(
def forward(self, x):
    held = [torch.exp(x)]
    held.append(torch.cos(x))
    both = [held, [x]]
    held[0] = torch.sin(x)
    return torch.mean(both[x.size(0) - 2][0] * held[1])
)JIT",
                "aten::_set_item");
    expect_kept(R"JIT(
def forward(self, x):
    held = [torch.exp(x)]
    held.append(torch.cos(x))
    both = [held, held]
    both[x.size(0) - 2][0] = torch.sin(x)
    return torch.mean(held[0] * both[1][0])
)JIT",
                "aten::_set_item");
    expect_settled(R"JIT(
def forward(self, x):
    held = [torch.exp(x)]
    held.append(torch.cos(x))
    both = [held, held]
    return torch.mean(held[0] * both[1][1])
)JIT");
}

TEST(Containers, WhatIsHeldAtAKnownPlaceIsKnown) {
    expect_settled(R"JIT(
def forward(self, x):
    held = [torch.exp(x)]
    held.append(torch.cos(x))
    both = [held, [x]]
    both[0][0] = torch.sin(x)
    held.append(both[1][0])
    return torch.mean(both[0][0] * held[1] + held[2])
)JIT");
}

TEST(Containers, FromAChangeThatIsNotFollowedOnItStaysAsItIs) {
    expect_kept(R"JIT(
def forward(self, x):
    held = [torch.exp(x)]
    held.append(torch.cos(x))
    y = held[0] * held[1]
    if bool(y.sum() > 100.):
        held[x.size(0) - 2] = torch.sin(x)
    held[1] = torch.tanh(y)
    return torch.mean(held[0] * held[1])
)JIT",
                "aten::_set_item");
    expect_kept(R"JIT(
def forward(self, x):
    made: Dict[str, Tensor] = {}
    made["a"] = torch.tanh(x)
    key = "a" if bool(x.sum() > 0.) else "b"
    made[key] = torch.sin(x)
    return torch.mean(made["a"])
)JIT",
                "aten::_set_item");
    expect_kept(R"JIT(
def forward(self, x):
    held = [torch.exp(x)]
    held.append(torch.cos(x))
    n = int(x.size(0)) - 1
    held[n] = torch.tanh(x)
    held.append(torch.sin(x))
    return torch.mean(torch.cat(held, 1))
)JIT",
                "aten::append");
}

}  // namespace
}  // namespace vpp
