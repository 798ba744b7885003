// Values, tensors, ops and parameters of models whose graph is small enough to be written down.
#include "graph/graph_builder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "graph/stages.hpp"
#include "unit/graph/models.hpp"

namespace vpp {
namespace {

using namespace test;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

const TorchScriptOptions kBuilderOptions = options_for({floats("x", {4}), integers("ids", {3})});

const GraphValue& output_of(const Graph& graph, const std::string& kind, int from = 0) {
    const GraphOp& op = graph.ops[static_cast<size_t>(op_of(graph, kind, from))];
    return graph.values[static_cast<size_t>(op.outputs.at(0))];
}

const GraphTensor& tensor_of(const Graph& graph, const GraphValue& value) {
    return graph.tensors[static_cast<size_t>(value.tensors.at(0))];
}

TEST(GraphBuilder, ShapesTypesAndGradientFlagsOfALinearLayer) {
    ModuleSpec model{"Model", "def forward(self, x):\n    return torch.mean(torch.sin(self.l.forward(x)))\n"};
    model.children = {{"l", linear(4, 3)}};
    const Graph graph = load(model, kBuilderOptions).graph;
    const GraphTensor& made = tensor_of(graph, output_of(graph, "aten::linear"));
    EXPECT_THAT(made.shape, ElementsAre(2, 3));
    EXPECT_TRUE(made.requires_grad);
    EXPECT_EQ(made.producer, 0);
    EXPECT_GE(made.message_bytes, made.bytes());
    const GraphOp& op = graph.ops[0];
    EXPECT_EQ(op.flops, 2.0 * 2 * 3 * 4);
    EXPECT_EQ(op.kept_bytes, 2 * 3 * 4) << "the sine reads it in its backward";
    EXPECT_THAT(op.parameters, ElementsAre(0, 1));
    EXPECT_EQ(graph.loss, graph.ops[2].outputs[0]);
    const GraphValue& x = graph.values[static_cast<size_t>(graph.inputs[0].value)];
    EXPECT_EQ(tensor_of(graph, x).input, 0);
    EXPECT_FALSE(tensor_of(graph, x).requires_grad);
    EXPECT_THAT(x.uses, ElementsAre(0));
}

TEST(GraphBuilder, OneTensorUnderSeveralValues) {
    // contiguous() and dropout outside of training give their input itself; view() does not.
    const ModuleSpec model{"Model", R"JIT(
def forward(self, x):
    h = torch.tanh(x)
    same = h.contiguous()
    kept = torch.dropout(same, 0.5, False)
    flat = kept.view([8])
    return torch.mean(flat)
)JIT"};
    const Graph graph = load(model, kBuilderOptions).graph;
    const int tensor = output_of(graph, "aten::tanh").tensors.at(0);
    EXPECT_THAT(output_of(graph, "aten::contiguous").tensors, ElementsAre(tensor));
    EXPECT_THAT(output_of(graph, "aten::dropout").tensors, ElementsAre(tensor));
    EXPECT_NE(output_of(graph, "aten::view").tensors.at(0), tensor);
    EXPECT_EQ(graph.ops[static_cast<size_t>(op_of(graph, "aten::view"))].kept_bytes, 0) << "no new memory";
}

TEST(GraphBuilder, AViewOfWhatItsOpHasMadeIsNewMemory) {
    // A linear layer of more than one dimension gives a view of its product.
    ModuleSpec model{"Model",
                     "def forward(self, x):\n    return torch.mean(torch.sin(self.l.forward(x.view([1, 2, 4]))))\n"};
    model.children = {{"l", linear(4, 3)}};
    const Graph graph = load(model, kBuilderOptions).graph;
    EXPECT_EQ(graph.ops[static_cast<size_t>(op_of(graph, "aten::linear"))].kept_bytes, 2 * 3 * 4);
}

TEST(GraphBuilder, WeightsThatAreCastAreListedAndNotKeptOfAMicrobatch) {
    ModuleSpec model{"Model",
                     "def forward(self, x):\n"
                     "    return torch.mean(torch.sin(self.b.forward(self.a.forward(x.view([1, 2, 4])))))\n"};
    model.children = {{"a", linear(4, 4)}, {"b", linear(4, 3)}};
    TorchScriptOptions options = kBuilderOptions;
    const auto last_linear = [&] {
        const Graph graph = load(model, options).graph;
        return graph.ops[static_cast<size_t>(op_of(graph, "aten::linear", op_of(graph, "aten::linear") + 1))];
    };
    EXPECT_THAT(last_linear().casts, IsEmpty());
    options.precision = "bf16";
    EXPECT_THAT(last_linear().casts, UnorderedElementsAre(2, 3)) << "its weight and its bias";
    EXPECT_EQ(last_linear().kept_bytes, 2 * 2 * 3) << "what it gives, in half precision";
}

TEST(GraphBuilder, WhatMicrobatchesWriteIsCastByEachOfThem) {
    ModuleSpec model{"Model",
                     "def forward(self, x):\n"
                     "    self.l.weight.detach().mul_(0.5)\n"
                     "    return torch.mean(self.l.forward(x.view([1, 2, 4])))\n"};
    model.children = {{"l", linear(4, 3)}};
    TorchScriptOptions options = kBuilderOptions;
    options.precision = "bf16";
    const Graph graph = load(model, options).graph;
    const GraphOp& op = graph.ops[static_cast<size_t>(op_of(graph, "aten::linear"))];
    EXPECT_THAT(op.casts, ElementsAre(1)) << "the bias alone";
    EXPECT_EQ(op.kept_bytes, 2 * (2 * 4 + 4 * 3)) << "nobody reads what it gives";
}

TEST(GraphBuilder, InPlaceWritersAreListed) {
    const ModuleSpec model{"Model", R"JIT(
def forward(self, x):
    h = torch.tanh(x)
    g = torch.relu_(h)
    return torch.mean(torch.sin(g.mul_(2.0)))
)JIT"};
    const Graph graph = load(model, kBuilderOptions).graph;
    const GraphTensor& h = tensor_of(graph, output_of(graph, "aten::tanh"));
    EXPECT_EQ(h.producer, op_of(graph, "aten::tanh"));
    EXPECT_THAT(h.writers, ElementsAre(op_of(graph, "aten::relu_"), op_of(graph, "aten::mul_")));
    EXPECT_TRUE(tensor_of(graph, output_of(graph, "aten::sin")).writers.empty());
}

TEST(GraphBuilder, ValuesThatAreNoTensorsHoldTheirs) {
    const ModuleSpec model{"Model", R"JIT(
def forward(self, x):
    n = x.size(0)
    parts = torch.chunk(torch.tanh(x), 2, 1)
    if n > 1:
        y = torch.mean(parts[0]) + torch.mean(parts[1])
    else:
        y = torch.mean(parts[0])
    return y
)JIT"};
    const Graph graph = load(model, kBuilderOptions).graph;
    const GraphValue& size = output_of(graph, "aten::size");
    EXPECT_EQ(size.type, "int");
    EXPECT_FALSE(size.is_tensor);
    EXPECT_TRUE(size.tensors.empty());
    const GraphValue& parts = output_of(graph, "aten::chunk");
    EXPECT_FALSE(parts.is_tensor);
    EXPECT_EQ(parts.tensors.size(), 2U);
    EXPECT_THAT(graph.ops[static_cast<size_t>(op_of(graph, "prim::If"))].inputs,
                ::testing::Contains(graph.ops[static_cast<size_t>(op_of(graph, "aten::chunk"))].outputs[0]));
}

TEST(GraphBuilder, TheContentsOfAGrowingListHaveTheirOwnMakers) {
    const ModuleSpec model{"Model", R"JIT(
def forward(self, x):
    outs: List[Tensor] = []
    h = torch.tanh(x)
    outs.append(h)
    outs.append(torch.sin(h))
    return torch.mean(torch.cat(outs, 1))
)JIT"};
    const Graph graph = load(model, kBuilderOptions).graph;
    const GraphValue& list = output_of(graph, "prim::ListConstruct", op_of(graph, "aten::sin"));
    ASSERT_EQ(list.tensors.size(), 2U);
    EXPECT_EQ(graph.tensors[static_cast<size_t>(list.tensors[0])].producer, op_of(graph, "aten::tanh"));
    EXPECT_EQ(graph.tensors[static_cast<size_t>(list.tensors[1])].producer, op_of(graph, "aten::sin"));
}

TEST(GraphBuilder, TheTargetThatALossIgnoresIsKnownWhereItIsAConstant) {
    const auto ignored = [](const std::string& index) {
        const std::string loss = "torch.cross_entropy_loss(x, ids, None, 1, " + index + ", 0.)";
        const ModuleSpec model{"Model", "def forward(self, x, ids):\n    return " + loss + "\n"};
        const Graph graph = load(model, options_for({floats("x", {4}), integers("ids", {})})).graph;
        return graph.ops[static_cast<size_t>(op_of(graph, "aten::cross_entropy_loss"))].ignored_targets;
    };
    EXPECT_THAT(ignored("-1"), ElementsAre(-1));
    EXPECT_THAT(ignored("-100"), ElementsAre(-100));
    EXPECT_THAT(ignored("int(torch.min(ids))"), ElementsAre());
}

TEST(GraphBuilder, IndicesAreKnownWithTheSizeThatTheyChooseFrom) {
    const auto indices = [](const std::string& chosen) {
        const ModuleSpec model{
            "Model", "def forward(self, x, ids, m):\n    return torch.mean(" + chosen + ")\n", {{"w", weight({6, 4})}}};
        const std::vector<Field> fields{floats("x", {4}), integers("ids", {}), Field{"m", DType::Bool, {}}};
        const Graph graph = load(model, options_for(fields)).graph;
        std::vector<std::pair<int64_t, int64_t>> found;
        for (const GraphOp& op : graph.ops) {
            for (const GraphIndex& index : op.indices) found.emplace_back(index.least, index.size);
        }
        return found;
    };
    using Found = std::pair<int64_t, int64_t>;
    EXPECT_THAT(indices("torch.gather(x, 1, torch.unsqueeze(ids, 1))"), ElementsAre(Found{0, 4}));
    EXPECT_THAT(indices("torch.gather(x, -1, torch.unsqueeze(ids, 1))"), ElementsAre(Found{0, 4}));
    EXPECT_THAT(indices("torch.index_select(self.w, 0, ids)"), ElementsAre(Found{0, 6}));
    EXPECT_THAT(indices("self.w[ids]"), ElementsAre(Found{-6, 6}));
    EXPECT_THAT(indices("self.w[:, ids]"), ElementsAre(Found{-4, 4}));
    EXPECT_THAT(indices("self.w[ids, ids]"), ElementsAre(Found{-6, 6}, Found{-4, 4}));
    EXPECT_THAT(indices("x[m]"), ElementsAre()) << "a mask";
    EXPECT_THAT(indices("torch.gather(x, int(torch.min(ids)), torch.unsqueeze(ids, 1))"), ElementsAre());
}

TEST(GraphBuilder, UnusedInputsAreKeptWithoutAValue) {
    const ModuleSpec model{"Model", "def forward(self, x, ids):\n    return torch.mean(x)\n"};
    const Graph graph = load(model, kBuilderOptions).graph;
    ASSERT_EQ(graph.inputs.size(), 2U);
    EXPECT_GE(graph.inputs[0].value, 0);
    EXPECT_EQ(graph.inputs[1].value, -1);
}

TEST(GraphBuilder, AComplexLossIsRefusedByItsOwnType) {
    const ModuleSpec model{"Model", "def forward(self, x):\n    return torch.complex(torch.mean(x), torch.sum(x))\n"};
    EXPECT_THAT(refusal(ErrorKind::BadData, [&] { load(model, kBuilderOptions); }),
                HasSubstr("the loss must be one floating-point number (got complex64[])"));
}

TEST(GraphBuilder, ALossMustBeOneFloatingPointNumber) {
    const ModuleSpec integers{"Model", "def forward(self, ids):\n    return torch.sum(ids)\n"};
    EXPECT_THAT(refusal(ErrorKind::BadData, [&] { load(integers, kBuilderOptions); }),
                HasSubstr("the loss must be one floating-point number (got int64[])"));
    const ModuleSpec row{"Model", "def forward(self, x):\n    return torch.mean(x, [1])\n"};
    EXPECT_THAT(refusal(ErrorKind::BadData, [&] { load(row, kBuilderOptions); }), HasSubstr("got float32[2]"));
    const ModuleSpec wide{"Model", "def forward(self, x):\n    return torch.mean(x.double())\n"};
    EXPECT_NO_THROW(load(wide, kBuilderOptions)) << "float64 is a number too";
}

TEST(GraphBuilder, KnowsWhetherShapesMayFollowTheData) {
    const auto follow = [](const std::string& shape, const std::string& precision = "fp32") {
        TorchScriptOptions options = options_for({floats("x", {4})});
        options.precision = precision;
        const ModuleSpec spec{"Model", R"JIT(
def forward(self, x):
    rows = torch.linspace(0, 2, 3)
    h = torch.dropout(torch.tanh(x), 0.5, True)
    return torch.mean()JIT" + shape + ")\n"};
        return load(spec, options).graph.shapes_follow_data;
    };
    for (const char* precision : {"fp32", "bf16"}) {
        EXPECT_FALSE(follow("h", precision)) << precision;
        EXPECT_TRUE(follow("torch.masked_select(h, torch.ge(h, 0))", precision)) << precision;
    }
    EXPECT_FALSE(follow("h[:, :int(rows[1])]")) << "what the model makes of nothing is always the same";
    EXPECT_TRUE(follow("h[:, :int(torch.randint(1, 4, [1]))]")) << "unless it is drawn";
    EXPECT_TRUE(follow("h[:, :int(torch.max(x)) + 1]"));
}

TEST(GraphBuilder, SparseAndNegatedValuesAreNoMessages) {
    const auto travels = [](const std::string& expression) {
        const Graph graph = load({"Model", "def forward(self, x):\n    v = " + expression +
                                               "\n    return torch.mean(v.to_dense().abs())\n"},
                                 kBuilderOptions)
                                .graph;
        const GraphTensor& made = graph.tensors.at(static_cast<size_t>(graph.values.at(1).tensors.at(0)));
        return made.travels;
    };
    EXPECT_TRUE(travels("torch.tanh(x)"));
    EXPECT_FALSE(travels("x.to_sparse()"));
    EXPECT_TRUE(travels("torch.fft_fft(x)"));
    EXPECT_FALSE(travels("torch._neg_view(x)"));
}

TEST(GraphBuilder, AnOutputThatIsComplexIsRefusedByName) {
    TorchScriptOptions options = kBuilderOptions;
    options.keep_outputs = true;
    options.loss_output = 0;
    const ModuleSpec model{"Model",
                           "def forward(self, x):\n    z = torch.fft_fft(x)\n    return torch.mean(torch.abs(z)), z\n"};
    EXPECT_THAT(refusal(ErrorKind::BadData, [&] { load(model, options); }),
                HasSubstr("of the model is no dense tensor of real numbers; torch.view_as_real"));
}

TEST(GraphBuilder, StateTakesNoGradientIntoTheNextMicrobatch) {
    const auto model = [](const std::string& lines) {
        ModuleSpec made{"Model", "def forward(self, x):\n    h = torch.tanh(torch.linear(x, self.w))\n" + lines};
        made.parameters = {{"w", weight({4, 4})}};
        made.buffers = {{"mean", values({4})}};
        return made;
    };
    const std::string write = "    self.mean.mul_(0.9).add_(torch.mul(h.mean([0]), 0.1))\n",
                      detached = "    self.mean.mul_(0.9).add_(torch.mul(h.detach().mean([0]), 0.1))\n",
                      read = "    return torch.mean(torch.cos(h) - self.mean)\n";
    EXPECT_THAT(refusal(ErrorKind::BadData, [&] { load(model(write + read), kBuilderOptions); }),
                AllOf(HasSubstr("the op aten::add_ in the model's forward"),
                      HasSubstr("writes values with a gradient into 'mean', which has none of its own"),
                      HasSubstr("the op aten::sub in the model's forward"), HasSubstr("write value.detach()")));
    for (const std::string& taken :
         {detached + read, "    old = torch.cos(h) * self.mean\n" + detached + "    return torch.mean(old)\n",
          write + "    return torch.mean(torch.cos(h) - self.mean.detach())\n",
          write + "    return torch.mean(torch.cos(h))\n"}) {
        EXPECT_TRUE(parameter_of(load(model(taken), kBuilderOptions).graph, "mean").written) << taken;
    }
}

TEST(GraphBuilder, ABufferThatABranchGivesOnIsNotWrittenByWhatItsOtherWayMakes) {
    const auto model = [](const std::string& after) {
        ModuleSpec made{"Model",
                        "def forward(self, x):\n"
                        "    m = self.mask\n"
                        "    if not torch.is_floating_point(m):\n"
                        "        m = torch.masked_fill_(torch.zeros_like(x), x > 0, -1.0)\n" +
                            after + "    return torch.mean(torch.relu(self.l.forward(x + m)) + m)\n"};
        made.children = {{"l", linear(4, 4)}};
        made.buffers = {{"mask", values({4})}};
        return made;
    };
    const Graph graph = load(model(""), kBuilderOptions).graph;
    EXPECT_FALSE(parameter_of(graph, "mask").written);
    EXPECT_NO_THROW(make_stages(graph, {graph.num_ops() - 3})) << "both sides of the cut read it";
    EXPECT_TRUE(parameter_of(load(model("    m.add_(1.0)\n"), kBuilderOptions).graph, "mask").written);
}

}  // namespace
}  // namespace vpp
