// Labels: every op carries the FQN of its submodule, however deep the calls go.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/graph/models.hpp"

namespace vpp {
namespace {

using namespace test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

LoadedModel load_simple(ModuleSpec spec) {
    return load(spec, options_for({floats("x", {4})}));
}

TEST(Inline, NamesWithUnderscoresDigitsAndNestedLists) {
    ModuleSpec model{"Model", R"JIT(
def forward(self, x):
    x = self.in_proj_1.forward(x)
    x = self.my_blocks.forward(x)
    x = self.l1.forward(x)
    x = self.l10.forward(x)
    return torch.mean(x)
)JIT"};
    model.children = {{"in_proj_1", linear(4, 4)},
                      {"my_blocks", sequential({linear(4, 4, 2), sequential({linear(4, 4, 3), dropout()})})},
                      {"l1", linear(4, 4, 4)},
                      {"l10", sequential({sequential({linear(4, 4, 5)})})}};  // the last module is nested
    const Graph graph = load_simple(model).graph;
    EXPECT_THAT(labels_of(graph),
                ElementsAre("aten::linear in_proj_1", "aten::linear my_blocks.0", "aten::linear my_blocks.1.0",
                            "aten::dropout my_blocks.1.1", "aten::linear l1", "aten::linear l10.0.0", "aten::mean "));
    EXPECT_EQ(graph.parameters[2].name, "my_blocks.0.weight");
    std::vector<std::string> modules;
    for (const GraphModule& module : graph.modules) modules.push_back(module.name + ":" + module.class_name);
    EXPECT_THAT(modules, ::testing::Contains("my_blocks.1.0:Linear"));
    EXPECT_THAT(modules, ::testing::Contains("l10:Sequential"));
}

TEST(Inline, TwoListsWithTheSameInnerNamesAreToldApart) {
    ModuleSpec model{"Model", "def forward(self, x):\n    return torch.mean(self.b.forward(self.a.forward(x)))\n"};
    model.children = {{"a", sequential({linear(4, 4)})}, {"b", sequential({linear(4, 4, 2)})}};
    EXPECT_THAT(labels_of(load_simple(model).graph),
                ElementsAre("aten::linear a.0", "aten::linear b.0", "aten::mean "));
}

TEST(Inline, AModuleCalledTwiceLabelsBothCalls) {
    ModuleSpec model{"Model", "def forward(self, x):\n    return torch.mean(self.l.forward(self.l.forward(x)))\n"};
    model.children = {{"l", linear(4, 4)}};
    const Graph graph = load_simple(model).graph;
    EXPECT_THAT(labels_of(graph), ElementsAre("aten::linear l", "aten::linear l", "aten::mean "));
    EXPECT_THAT(parameter_of(graph, "l.weight").uses, ElementsAre(0, 1));
}

TEST(Inline, AForkIsACallWhereItStands) {
    ModuleSpec model{"Model", R"JIT(
def forward(self, x):
    later = fork(self.a.forward, x)
    s = torch.sin(x)
    return torch.mean(torch.wait(later) + s)
)JIT"};
    model.children = {{"a", sequential({linear(4, 4), dropout()})}};
    EXPECT_THAT(labels_of(load_simple(model).graph),
                ElementsAre("aten::linear a.0", "aten::dropout a.1", "aten::sin ", "aten::add ", "aten::mean "));
}

TEST(Inline, FuturesInAListAreRefused) {
    ModuleSpec model{"Model", R"JIT(
def forward(self, x):
    later = [fork(self.a.forward, x)]
    return torch.mean(torch.wait(later[0]))
)JIT"};
    model.children = {{"a", linear(4, 4)}};
    EXPECT_THAT(refusal(ErrorKind::BadData, [&] { load_simple(model); }),
                HasSubstr("forward keeps what torch.jit.fork gives in a list, a branch or a loop, which is not "
                          "supported; call torch.jit.wait on it directly"));
}

TEST(Inline, OtherMethodsAndFreeFunctionsBelongToTheirCaller) {
    ModuleSpec model{"Model", R"JIT(
def scaled(self, x):
    return twice(x)

def forward(self, x):
    y = self.head.logits(x)
    return torch.mean(self.scaled(y))
)JIT"};
    model.functions =
        "def once_more(x):\n    return torch.relu(x)\n\n\ndef twice(x):\n    return once_more(once_more(x))\n";
    ModuleSpec head = linear(4, 4);
    head.code += "\ndef logits(self, x):\n    return twice(self.forward(x))\n";
    model.children = {{"head", head}};
    EXPECT_THAT(labels_of(load_simple(model).graph),
                ElementsAre("aten::linear head", "aten::relu head", "aten::relu head", "aten::relu ", "aten::relu ",
                            "aten::mean "));
}

TEST(Inline, CallsInsideControlFlowAreInlinedToo) {
    ModuleSpec model{"Model", R"JIT(
def forward(self, x):
    for i in range(x.size(0)):
        x = self.l.forward(x)
    return torch.mean(x)
)JIT"};
    model.children = {{"l", linear(4, 4)}};
    LoadedModel loaded = load_simple(model);
    const int loop = op_of(loaded.graph, "prim::Loop");
    EXPECT_THAT(parameter_of(loaded.graph, "l.weight").uses, ElementsAre(loop));
    const at::Tensor loss = run_in_pieces(loaded, {}, {{"x", values({2, 4})}});
    EXPECT_EQ(bits_of(loss), bits_of(run_in_pieces(loaded, {loop}, {{"x", values({2, 4})}})));
}

TEST(Inline, AModelWithoutForwardIsRefused) {
    const ModuleSpec model{"Model", "def other(self, x):\n    return x\n"};
    EXPECT_THAT(refusal(ErrorKind::BadData, [&] { load_simple(model); }),
                HasSubstr("the model file has no method 'forward'"));
    const ModuleSpec several{"Model", "def forward__0(self, x):\n    return x\n"};
    EXPECT_THAT(
        refusal(ErrorKind::BadData, [&] { load_simple(several); }),
        HasSubstr("no method 'forward' but one for each kind of argument, as nn.LSTM and nn.GRU have; wrap it in "
                  "a module whose forward calls it"));
}

TEST(Inline, CallsThatDoubleAndDoubleAreRefused) {
    ModuleSpec inner{"Leaf", "def forward(self, x):\n    return torch.tanh(x)\n"};
    for (int depth = 0; depth < 40; ++depth) {
        ModuleSpec outer{"Twice" + std::to_string(depth),
                         "def forward(self, x):\n    return self.m.forward(self.m.forward(x))\n"};
        outer.children = {{"m", std::move(inner)}};
        inner = std::move(outer);
    }
    ModuleSpec model{"Model", "def forward(self, x):\n    return torch.mean(self.m.forward(x))\n"};
    model.children = {{"m", std::move(inner)}};
    EXPECT_THAT(refusal(ErrorKind::BadData, [&] { load_simple(model); }),
                HasSubstr("the model's calls, written out, have more than 4000000 nodes"));
}

}  // namespace
}  // namespace vpp
