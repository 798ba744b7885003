// Attributes: tensors become inputs under one canonical name, the rest folds away.
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/graph/models.hpp"

namespace vpp {
namespace {

using namespace test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const TorchScriptOptions kAttributeOptions = options_for({floats("x", {4})});

TEST(Attributes, ATiedParameterIsOneUnderTheFirstOfNamedParameters) {
    const at::Tensor shared = weight({4, 4});
    ModuleSpec first{"First", "def forward(self, x):\n    return torch.linear(x, self.w)\n", {{"w", shared}}};
    ModuleSpec second{"Second", "def forward(self, x):\n    return torch.linear(x, self.w)\n", {{"w", shared}}};
    // forward uses the second name first; the name must not depend on that.
    ModuleSpec model{"Model", "def forward(self, x):\n    return torch.mean(self.a.forward(self.b.forward(x)))\n"};
    model.children = {{"a", first}, {"b", second}};
    const Graph graph = load(model, kAttributeOptions).graph;
    ASSERT_EQ(graph.parameters.size(), 1U);
    EXPECT_EQ(graph.parameters[0].name, "a.w");
    EXPECT_THAT(graph.parameters[0].aliases, ElementsAre("b.w"));
    EXPECT_THAT(graph.parameters[0].uses, ElementsAre(0, 1));
    EXPECT_TRUE(graph.cuts[1].legal);
}

TEST(Attributes, EqualButSeparateParametersAreNotTied) {
    ModuleSpec model{"Model", "def forward(self, x):\n    return torch.mean(self.a.forward(self.b.forward(x)))\n"};
    model.children = {{"a", linear(4, 4)}, {"b", linear(4, 4)}};
    const Graph graph = load(model, kAttributeOptions).graph;
    EXPECT_EQ(graph.parameters.size(), 4U);
    EXPECT_TRUE(graph.cuts[1].legal);
}

TEST(Attributes, NumbersListsAndNoneBecomeConstants) {
    ModuleSpec model{"Model", R"JIT(
def forward(self, x):
    if self.scale > 1.0:
        x = x * self.scale
    if self.absent is not None:
        x = x - 1.0
    return torch.mean(x.reshape(self.shape))
)JIT"};
    model.attributes = {{"scale", 2.0}, {"shape", c10::List<int64_t>({8})}, {"absent", c10::IValue()}};
    LoadedModel loaded = load(model, kAttributeOptions);
    EXPECT_THAT(labels_of(loaded.graph), ElementsAre("aten::mul ", "aten::reshape ", "aten::mean "));
    EXPECT_TRUE(loaded.graph.parameters.empty());
}

// By the number of dims, what to do with a tensor.
TEST(Attributes, ADictIsMadeWhereItIsRead) {
    c10::Dict<int64_t, c10::List<int64_t>> orders;
    orders.insert(2, c10::List<int64_t>({1, 0}));
    orders.insert(3, c10::List<int64_t>({2, 0, 1}));
    ModuleSpec model{"Model", R"JIT(
def forward(self, x):
    y = torch.tanh(x).permute(self.orders[x.dim()])
    return torch.mean(y * self.scales["b"][0][1])
)JIT"};
    c10::impl::GenericDict scales(
        c10::StringType::get(),
        c10::ListType::create(c10::TupleType::create({c10::IntType::get(), c10::FloatType::get()})));
    c10::impl::GenericList pairs(c10::TupleType::create({c10::IntType::get(), c10::FloatType::get()}));
    pairs.emplace_back(c10::ivalue::Tuple::create({int64_t{1}, 2.5}));
    scales.insert("b", pairs);
    model.attributes = {{"orders", orders}, {"scales", scales}};
    load_exactly(model, kAttributeOptions, {{"x", values({2, 4})}});
}

TEST(Attributes, AListOfParametersIsMadeOfThem) {
    const at::Tensor w = weight({4, 4}), b = weight({4});
    ModuleSpec model{"Model",
                     "def forward(self, x):\n    return torch.mean(torch.linear(x, self.all[0], self.all[1]))\n",
                     {{"w", w}, {"b", b}}};
    model.attributes = {{"all", c10::List<at::Tensor>({w, b})}};
    const Graph graph = load(model, kAttributeOptions).graph;
    ASSERT_EQ(graph.parameters.size(), 2U);
    EXPECT_EQ(graph.parameters[0].name, "w");
    EXPECT_FALSE(graph.parameters[0].uses.empty());
    EXPECT_TRUE(graph.parameters[0].requires_grad);
    // A list that grows from call to call is none of parameters.
    model.code = "def forward(self, x):\n    self.all.append(x)\n    return torch.mean(self.all[0])\n";
    EXPECT_THAT(
        refusal(ErrorKind::BadData, [&] { load(model, kAttributeOptions); }),
        HasSubstr("the attribute 'all' of the model is a GenericList with tensors, which cannot be used in a "));
}

TEST(Attributes, TheTrainingFlagIsFoldedInBothModes) {
    ModuleSpec model{"Model", R"JIT(
def forward(self, x):
    if self.training:
        x = torch.relu(x)
    else:
        x = torch.tanh(x)
    return torch.mean(self.drop.forward(x))
)JIT"};
    model.children = {{"drop", dropout()}};
    TorchScriptOptions options = kAttributeOptions;
    EXPECT_THAT(labels_of(load(model, options).graph), ElementsAre("aten::relu ", "aten::dropout drop", "aten::mean "));
    options.training = false;
    LoadedModel evaluation = load(model, options);
    EXPECT_THAT(labels_of(evaluation.graph), ElementsAre("aten::tanh ", "aten::dropout drop", "aten::mean "));
    EXPECT_TRUE(evaluation.graph.warnings.empty());
    const at::Tensor x = values({2, 4});
    EXPECT_EQ(bits_of(run_in_pieces(evaluation, {}, {{"x", x}}, 1)),
              bits_of(run_in_pieces(evaluation, {}, {{"x", x}}, 2)))
        << "no dropout in evaluation";
}

TEST(Attributes, AModeThatIsBakedInIsNoted) {
    const ModuleSpec traced{"Model", "def forward(self, x):\n    return torch.mean(torch.dropout(x, 0.5, True))\n"};
    const Graph graph = load(traced, kAttributeOptions).graph;
    ASSERT_EQ(graph.warnings.size(), 1U);
    EXPECT_THAT(graph.warnings[0], HasSubstr("baked into this model"));
    for (const char* same : {"x", "torch.dropout(x, 0.0, True)"}) {
        const ModuleSpec plain{"Model", std::string("def forward(self, x):\n    return torch.mean(") + same + ")\n"};
        EXPECT_TRUE(load(plain, kAttributeOptions).graph.warnings.empty()) << same;
    }
}

TEST(Attributes, AssignmentInForwardIsRefusedWithTheRemedy) {
    ModuleSpec inner{"Counter", "def forward(self, x):\n    self.seen = self.seen + 1\n    return x * self.seen\n"};
    inner.attributes = {{"seen", 0}};
    ModuleSpec model{"Model", "def forward(self, x):\n    return torch.mean(self.count.forward(x))\n"};
    model.children = {{"count", inner}};
    const std::string text = refusal(ErrorKind::BadData, [&] { load(model, kAttributeOptions); });
    EXPECT_THAT(text, HasSubstr("forward assigns the attribute 'seen' of 'count'"));
    EXPECT_THAT(text, HasSubstr("self.seen.copy_("));
    // The remedy works.
    inner = {"Counter", "def forward(self, x):\n    self.seen.copy_(self.seen + 1)\n    return x * self.seen\n"};
    inner.buffers = {{"seen", values({})}};
    model.children = {{"count", inner}};
    const Graph graph = load(model, kAttributeOptions).graph;
    EXPECT_TRUE(parameter_of(graph, "count.seen").written);
}

/// RAFT keeps what its first half made so.
ModuleSpec model_with_memory(const std::string& forward) {
    ModuleSpec model{"Model", forward};
    model.attributes = {{"seen", c10::IValue(std::vector<at::Tensor>{})}, {"scale", 2.0}};
    return model;
}

TEST(Attributes, WhatIsAssignedBeforeItIsReadIsAValue) {
    LoadedModel model = load(model_with_memory(R"JIT(
def forward(self, x):
    self.seen = [torch.tanh(x)]
    self.seen.append(torch.sin(x))
    self.scale = 3.0
    y = torch.exp(x) * self.scale
    for i in range(x.size(0)):
        y = y + self.seen[i]
    return torch.mean(y)
)JIT"),
                             kAttributeOptions);
    const at::Tensor x = values({2, 4});
    const double expected = (x.exp() * 3. + x.tanh() + x.sin()).mean().item<double>();
    for (int cut = 1; cut < model.graph.num_ops(); ++cut) {
        EXPECT_TRUE(model.graph.cuts[static_cast<size_t>(cut)].legal) << cut;
        EXPECT_NEAR(run_in_pieces(model, {cut}, {{"x", x}}).item<double>(), expected, 1e-6) << cut;
    }
}

TEST(Attributes, WhatIsReadBeforeItIsAssignedBelongsToTheModel) {
    for (const char* code : {"    y = x * self.scale\n    self.scale = 3.0\n    return torch.mean(y)\n",
                             "    self.kept = torch.sin(x)\n    return torch.mean(self.kept)\n"}) {
        ModuleSpec model = model_with_memory(std::string("def forward(self, x):\n") + code);
        model.parameters = {{"kept", values({2, 4})}};
        const std::string text = refusal(ErrorKind::BadData, [&] { load(model, kAttributeOptions); });
        EXPECT_THAT(text, HasSubstr("forward assigns the attribute")) << code;
    }
}

TEST(Attributes, AWriteInPlaceIsNoAssignment) {
    const Inputs inputs{{"x", values({2, 4})}};
    const std::string head = "def forward(self, x):\n    h = torch.tanh(torch.linear(x, self.w))\n";
    for (const char* lines :
         {"    self.mean += 1\n    h = h * self.mean\n", "    h = h * (1 + self.mean)\n    self.mean -= 0.5\n",
          "    old = self.mean\n    self.mean *= 0.9\n    self.mean /= 3.0\n"
          "    self.mean += 0.1 * x.mean([0])\n    h = h * self.mean + old\n",
          "    for i in range(x.size(0)):\n        self.mean += x[i]\n"
          "        if bool(x.sum() > -100.):\n            self.mean *= 0.5\n    h = h * self.mean\n",
          "    mean = self.mean\n    mean += 1\n    self.mean = mean.mul_(0.5)\n"
          "    h = h * self.mean + mean\n"}) {
        ModuleSpec model{"Model", head + lines + "    return torch.mean(torch.cos(h))\n"};
        model.parameters = {{"w", weight({4, 4})}};
        model.buffers = {{"mean", values({4})}};
        const Graph graph = load_exactly(model, kAttributeOptions, inputs);
        EXPECT_TRUE(parameter_of(graph, "mean").written) << lines;
    }
}

TEST(Attributes, AWriteInPlaceIntoSomethingElseIsAnAssignment) {
    ModuleSpec model{"Model",
                     "def forward(self, x):\n    self.mean = self.other.add_(1)\n"
                     "    return torch.mean(x * self.w * self.mean)\n"};
    model.parameters = {{"w", weight({4})}};
    model.buffers = {{"mean", values({4})}, {"other", values({4}, 1)}};
    EXPECT_THAT(refusal(ErrorKind::BadData, [&] { load(model, kAttributeOptions); }),
                HasSubstr("forward assigns the buffer 'mean', and elsewhere writes in place"));
    model.code =
        "def forward(self, x):\n    self.mean += 1\n    self.mean = self.mean + self.other\n"
        "    return torch.mean(x * self.w * self.mean)\n";
    EXPECT_THAT(refusal(ErrorKind::BadData, [&] { load(model, kAttributeOptions); }),
                HasSubstr("forward assigns the buffer 'mean', and elsewhere writes in place"));
}

TEST(Attributes, WhatAFlagLeavesOutAssignsNothing) {
    const auto model_that = [](bool keeps, const std::string& condition) {
        ModuleSpec model = model_with_memory("def forward(self, x):\n    y = torch.tanh(x)\n    if " + condition +
                                             ":\n        self.seen = [y]\n    else:\n        y = torch.sin(y)\n"
                                             "    return torch.mean(y)\n");
        model.attributes.insert(model.attributes.end(), {{"keeps", keeps}, {"depth", 2}});
        return model;
    };
    const at::Tensor x = values({2, 4});
    for (const char* condition : {"self.keeps", "self.depth > 1 and self.keeps", "not (self.depth < 3 or self.keeps)",
                                  "self.keeps and x.size(0) > 1"}) {
        LoadedModel model = load(model_that(false, condition), kAttributeOptions);
        EXPECT_EQ(bits_of(run_in_pieces(model, {1}, {{"x", x}})), bits_of(x.tanh().sin().mean())) << condition;
    }
    LoadedModel kept = load(model_that(true, "self.keeps"), kAttributeOptions);
    EXPECT_EQ(bits_of(run_in_pieces(kept, {1}, {{"x", x}})), bits_of(x.tanh().mean())) << "straight, as it is taken";
    EXPECT_THAT(refusal(ErrorKind::BadData,
                        [&] { load(model_that(true, "self.keeps and float(x.sum()) > 0."), kAttributeOptions); }),
                HasSubstr("forward assigns the attribute 'seen'"));
}

TEST(Attributes, NamesMayBeNumbers) {
    ModuleSpec list{"ParameterList", "", {{"0", weight({4})}, {"1", weight({4}, 1)}}};
    ModuleSpec model{"Model",
                     "def forward(self, x):\n    p = self.p\n"
                     "    return torch.mean(x * getattr(p, \"0\") + getattr(p, \"1\"))\n"};
    model.children = {{"p", list}};
    const Graph graph = load_exactly(model, kAttributeOptions, {{"x", values({2, 4})}});
    EXPECT_EQ(parameter_of(graph, "p.1").shape, std::vector<int64_t>{4});
}

TEST(Attributes, AssignmentInsideABranchIsRefusedToo) {
    ModuleSpec model{"Model", R"JIT(
def forward(self, x):
    if x.size(0) > 1:
        self.seen = self.seen + 1
    return torch.mean(x)
)JIT"};
    model.attributes = {{"seen", 0}};
    EXPECT_THAT(refusal(ErrorKind::BadData, [&] { load(model, kAttributeOptions); }),
                HasSubstr("attribute 'seen' of the model"));
}

TEST(Attributes, AListOfTensorsAsAttributeIsRefused) {
    ModuleSpec model{"Model", "def forward(self, x):\n    return torch.mean(x * self.scales[0])\n"};
    model.attributes = {{"scales", c10::List<at::Tensor>({values({4})})}};
    EXPECT_THAT(refusal(ErrorKind::BadData, [&] { load(model, kAttributeOptions); }),
                HasSubstr(", which cannot be used in a pipeline; make each tensor in it a buffer"));
}

TEST(Attributes, ASubmoduleAsAValueIsRefused) {
    ModuleSpec model{"Model", "def forward(self, x):\n    return torch.mean(x), self.l\n"};
    model.children = {{"l", linear(4, 4)}};
    EXPECT_EQ(refusal(ErrorKind::BadData, [&] { load(model, kAttributeOptions); }),
              "the model uses a submodule as a value (in prim::TupleConstruct), which is not supported");
}

TEST(Attributes, BuffersFrozenAndUnusedParametersKeepTheirNature) {
    ModuleSpec model{"Model",
                     "def forward(self, x):\n    return torch.mean(x * self.frozen + self.table + self.plain)\n"};
    model.parameters = {{"frozen", values({4})}, {"unused", weight({3})}};
    model.buffers = {{"table", values({4}, 1)}};
    model.attributes = {{"plain", values({4}, 2)}};
    const Graph graph = load(model, kAttributeOptions).graph;
    EXPECT_FALSE(parameter_of(graph, "frozen").requires_grad);
    EXPECT_FALSE(parameter_of(graph, "frozen").is_buffer);
    EXPECT_TRUE(parameter_of(graph, "unused").requires_grad);
    EXPECT_TRUE(parameter_of(graph, "unused").uses.empty());
    EXPECT_TRUE(parameter_of(graph, "table").is_buffer);
    EXPECT_TRUE(parameter_of(graph, "plain").is_buffer);
    EXPECT_FALSE(parameter_of(graph, "table").written);
}

TEST(Attributes, AListOrDictThatForwardChangesIsRefused) {
    const auto refused = [](const std::string& change, c10::IValue value) {
        ModuleSpec model{"Model", "def forward(self, x):\n" + change + "    return torch.mean(x)\n"};
        model.attributes = {{"seen", std::move(value)}};
        return refusal(ErrorKind::BadData, [&] { load(model, kAttributeOptions); });
    };
    const c10::List<int64_t> numbers({1, 2});
    c10::Dict<std::string, double> scales;
    scales.insert("a", 2.0);
    const char* const said = "forward changes the list or dict 'seen' of the model";
    EXPECT_THAT(refused("    self.seen.append(x.dim())\n    x = x * len(self.seen)\n", numbers), HasSubstr(said));
    EXPECT_THAT(refused("    self.seen[0] = 5\n", numbers), HasSubstr(said)) << "nothing reads it";
    EXPECT_THAT(refused("    held = (self.seen, 1)\n    held[0].append(3)\n    x = x * len(self.seen)\n", numbers),
                HasSubstr(said));
    EXPECT_THAT(refused("    self.seen[\"b\"] = 1.0\n", scales), HasSubstr(said));
    c10::Dict<int64_t, c10::List<int64_t>> lists;
    lists.insert(2, numbers);
    EXPECT_THAT(refused("    self.seen[x.dim()].append(3)\n    x = x * len(self.seen[x.dim()])\n", lists),
                HasSubstr(said))
        << "a list inside";
    ModuleSpec reads{"Model",
                     "def forward(self, x):\n    y = [s for s in self.seen]\n    y.append(3)\n"
                     "    return torch.mean(x * y[0] * len(y))\n"};
    reads.attributes = {{"seen", numbers}};
    EXPECT_NO_THROW(load(reads, kAttributeOptions)) << "a copy may be changed";
}

}  // namespace
}  // namespace vpp
