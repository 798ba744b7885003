// The probe: what it learns, on which device, and what it says when a model does not run.
#include "graph/probe.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/ir/irparser.h>

#include <set>
#include <unordered_map>

#include "unit/graph/models.hpp"

namespace vpp {
namespace {

using namespace test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct Probed {
    JitGraph jit;
    std::unordered_map<std::string, torch::jit::Value*> values;
    ProbeResult result;
    const c10::IValue& at(const std::string& name) const { return result.values.at(values.at(name)); }
};

int num_weights_asked = 0;  // in the last probe

/// Probes a graph whose first input is the field x: [n, 4], and whose second, if any, is a parameter [4].
Probed run(const std::string& text) {
    Probed probed;
    probed.jit.graph = std::make_shared<torch::jit::Graph>();
    torch::jit::parseIR(text, probed.jit.graph.get(), probed.values);
    list_ops(probed.jit);
    probed.jit.loss = probed.jit.graph->outputs()[0];
    if (probed.jit.graph->inputs().size() > 1) {
        probed.jit.parameters.push_back({"w", {}, weight({4}), false, probed.jit.graph->inputs()[1]});
    }
    num_weights_asked = 0;
    const auto weight_of = [&](size_t i) {
        ++num_weights_asked;
        return probed.jit.parameters[i].tensor;
    };
    probed.result = probe(probed.jit, {{probed.jit.graph->inputs()[0], floats("x", {4})}}, 3, weight_of);
    return probed;
}

TEST(Probe, RunsOnMetaWhereNothingIsRead) {
    const Probed probed = run(R"IR(
graph(%x : Tensor, %w : Tensor):
  %y : Tensor = aten::mul(%x, %w)
  %z : Tensor = aten::detach(%y)
  return (%y))IR");
    EXPECT_FALSE(probed.result.shapes_follow_data);
    EXPECT_EQ(num_weights_asked, 0);
    EXPECT_EQ(probed.at("y").toTensor().sizes(), (std::vector<int64_t>{3, 4}));
    EXPECT_TRUE(probed.at("y").toTensor().requires_grad());
    EXPECT_FALSE(probed.at("z").toTensor().requires_grad());
    EXPECT_FALSE(probed.at("x").toTensor().requires_grad());
}

// A mask that is made on the spot, on a device that the code names or not, and a copy to the CPU that a trace has.
TEST(Probe, WhatAModelMakesOfNothingIsOnMetaToo) {
    const Probed probed = run(R"IR(
graph(%x : Tensor, %w : Tensor):
  %none : NoneType = prim::Constant()
  %no : bool = prim::Constant[value=0]()
  %four : int = prim::Constant[value=4]()
  %half : float = prim::Constant[value=0.5]()
  %yes : bool = prim::Constant[value=1]()
  %float : int = prim::Constant[value=6]()
  %cpu : Device = prim::Constant[value="cpu"]()
  %places : Tensor = aten::arange(%four, %float, %none, %none, %no)
  %named : Tensor = aten::arange(%four, %float, %none, %cpu, %no)
  %moved : Tensor = aten::to(%x, %cpu, %float, %no, %no, %none)
  %a : Tensor = aten::mul(%moved, %places)
  %b : Tensor = aten::mul(%a, %named)
  %y : Tensor = aten::dropout(%b, %half, %yes)
  %z : Tensor = aten::mul(%y, %w)
  return (%z))IR");
    EXPECT_FALSE(probed.result.shapes_follow_data);
    EXPECT_EQ(probed.at("z").toTensor().sizes(), (std::vector<int64_t>{3, 4}));
}

// Numbers that it makes itself, and looks at, need no data.
TEST(Probe, WhatAModelMakesOfNothingMayBeLookedAt) {
    const Probed probed = run(R"IR(
graph(%x : Tensor, %w : Tensor):
  %none : NoneType = prim::Constant()
  %no : bool = prim::Constant[value=0]()
  %four : int = prim::Constant[value=4]()
  %three : int = prim::Constant[value=3]()
  %places : Tensor = aten::arange(%four, %none, %none, %none, %no)
  %sum : Tensor = aten::sum(%places, %none)
  %six : int = aten::Int(%sum)
  %one : int = prim::Constant[value=1]()
  %row : Tensor = aten::unsqueeze(%x, %one)
  %shape : int[] = prim::ListConstruct(%three, %six, %four)
  %y : Tensor = aten::expand(%row, %shape, %no)
  %z : Tensor = aten::mul(%y, %w)
  return (%z))IR");
    EXPECT_FALSE(probed.result.shapes_follow_data);
    EXPECT_EQ(num_weights_asked, 0);
    EXPECT_EQ(probed.at("z").toTensor().sizes(), (std::vector<int64_t>{3, 6, 4}));
}

TEST(Probe, KnowsOnMetaWhatOpsKeep) {
    const Probed probed = run(R"IR(
graph(%x : Tensor, %w : Tensor):
  %y : Tensor = aten::mul(%x, %w)
  %z : Tensor = aten::exp(%y)
  %loss : Tensor = aten::mul(%z, %z)
  return (%loss))IR");
    std::vector<int64_t> kept;
    for (const OpMemory& op : probed.result.memory) kept.push_back(op.kept_bytes);
    EXPECT_THAT(kept, ElementsAre(0, 3 * 4 * 4, 3 * 4 * 4)) << "nobody keeps y";
}

TEST(Probe, GoesToTheCpuWhereAnOpLooksAtNumbers) {
    const Probed probed = run(R"IR(
graph(%x : Tensor, %w : Tensor):
  %none : NoneType = prim::Constant()
  %y : Tensor = aten::nonzero(%w)
  %s : Tensor = aten::sum(%w, %none)
  %n : Scalar = aten::item(%s)
  return (%y))IR");
    EXPECT_TRUE(probed.result.shapes_follow_data);
    EXPECT_TRUE(probed.result.memory.empty());
    EXPECT_EQ(num_weights_asked, 1);
    EXPECT_TRUE(probed.at("n").isDouble());
}

// A large model takes minutes there, and memory.
TEST(Probe, WhatFailsForItsShapesIsNotTriedOnTheCpu) {
    const auto failure_of = [](const std::string& ops) {
        return refusal(ErrorKind::BadData, [&] { run("graph(%x : Tensor, %w : Tensor):\n" + ops); });
    };
    EXPECT_THAT(failure_of("  %y : Tensor = aten::mm(%x, %x)\n  return (%y)"), HasSubstr("aten::mm"));
    EXPECT_EQ(num_weights_asked, 0);
    EXPECT_THAT(failure_of("  %l : Tensor[] = prim::ListConstruct(%x, %w)\n  %n : int = prim::Constant[value=1]()\n"
                           "  %y : Tensor = aten::cat(%l, %n)\n  return (%y)"),
                HasSubstr("aten::cat"));
    EXPECT_EQ(num_weights_asked, 0);
    // Here numbers may help: what has no kernel there runs over zeros, and a list with tensors in it is not followed.
    EXPECT_THAT(failure_of("  %y : Tensor = aten::nonzero(%x)\n  %z : Tensor = aten::mm(%x, %x)\n  return (%z)"),
                HasSubstr("aten::mm"));
    EXPECT_EQ(num_weights_asked, 1);
    EXPECT_THAT(failure_of("  %y : Tensor = aten::linalg_inv(%x)\n  return (%y)"), HasSubstr("aten::linalg_inv"));
}

TEST(Probe, WhatFollowsTheDataIsATensorOfItsOwn) {
    const auto same = [](const std::string& condition) {
        const Probed probed = run("graph(%x : Tensor, %w : Tensor):\n" + condition + R"IR(
  %y : Tensor = aten::mul(%x, %w)
  %z : Tensor = prim::If(%c)
    block0():
      %s : Tensor = aten::sin(%y)
      -> (%s)
    block1():
      -> (%y)
  return (%z))IR");
        const at::Tensor y = probed.at("y").toTensor(), z = probed.at("z").toTensor();
        EXPECT_TRUE(z.requires_grad());
        EXPECT_EQ(z.storage().unsafeGetStorageImpl(), y.storage().unsafeGetStorageImpl());
        return z.is_same(y);
    };
    EXPECT_FALSE(
        same("  %none : NoneType = prim::Constant()\n  %t : Tensor = aten::sum(%x, %none)\n"
             "  %c : bool = aten::Bool(%t)"));
    EXPECT_TRUE(
        same("  %n : int = prim::Constant[value=7]()\n  %r : int = aten::dim(%x)\n"
             "  %c : bool = aten::eq(%r, %n)"));
}

// The loop runs here and puts something without a gradient in the place of what has one; in another microbatch not.
TEST(Probe, WhatALoopTakesOutOfAListMayHaveHadAGradient) {
    const auto gradient_of = [](const std::string& use) {
        const Probed probed = run(R"IR(
graph(%x : Tensor, %w : Tensor):
  %none : NoneType = prim::Constant()
  %yes : bool = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %y : Tensor = aten::mul(%x, %w)
  %held : Tensor[] = prim::ListConstruct(%y, %x)
  %sum : Tensor = aten::sum(%x, %none)
  %few : Tensor = aten::le(%sum, %one)
  %count : int = aten::Int(%few)
  %rounds : int = prim::Loop(%count, %yes, %zero)
    block0(%i : int, %before : int):
      %s : Tensor = aten::sin(%x)
      %set : Tensor[] = aten::_set_item(%held, %zero, %s)
      -> (%yes, %i)
)IR" + use + "\n  return (%z)");
        return probed.at("z").toTensor().requires_grad();
    };
    EXPECT_TRUE(gradient_of("  %z : Tensor = aten::__getitem__(%held, %zero)"));
    EXPECT_TRUE(gradient_of("  %z : Tensor = aten::cat(%held, %zero)"));
    EXPECT_FALSE(gradient_of("  %z : Tensor = aten::sin(%x)"));
}

TEST(Probe, ValuesInOneMemoryAreFound) {
    const Probed probed = run(R"IR(
graph(%x : Tensor, %w : Tensor):
  %y : Tensor = aten::mul(%x, %w)
  %l : Tensor[] = prim::ListConstruct(%y, %w)
  %m : Tensor[] = aten::broadcast_tensors(%l)
  %a : Tensor, %b : Tensor = prim::ListUnpack(%m)
  %z : Tensor = aten::sin(%a)
  return (%z, %b))IR");
    const auto value = [&](const char* name) { return probed.values.at(name); };
    const std::vector<torch::jit::Value*> all{value("x"), value("w"), value("y"), value("l"),
                                              value("m"), value("a"), value("b"), value("z")};
    using Group = std::vector<const torch::jit::Value*>;
    EXPECT_THAT(values_in_one_memory(probed.result, all),
                ::testing::ElementsAre(Group{value("w"), value("l"), value("m"), value("b")},
                                       Group{value("y"), value("l"), value("m"), value("a")}));
}

const TorchScriptOptions kProbeOptions = options_for({floats("x", {4})}, 5);

TEST(Probe, AFailingOpIsNamedWithItsSubmodule) {
    ModuleSpec model{"Model", "def forward(self, x):\n    return torch.mean(self.head.forward(torch.relu(x)))\n"};
    model.children = {{"head", sequential({linear(4, 4), linear(6, 4)})}};
    const std::string text = refusal(ErrorKind::BadData, [&] { load(model, kProbeOptions); });
    EXPECT_THAT(text, HasSubstr("the op aten::linear in 'head.1' at <string>:2 fails: "));
    EXPECT_THAT(text, HasSubstr(" (with a microbatch of 5 samples of x float32[4])"));
    EXPECT_THAT(text, Not(HasSubstr("Traceback")));
    EXPECT_THAT(text, Not(HasSubstr("\n"))) << "LibTorch's own message, one line of it";
    EXPECT_THAT(text, Not(HasSubstr("as float32")));
}

TEST(Probe, NumbersOfAnotherDtypeThanTheWeightsAreSaidWithWhatHelps) {
    ModuleSpec model{"Model", "def forward(self, x):\n    return torch.mean(self.head.forward(x))\n"};
    model.children = {{"head", sequential({linear(4, 4)})}};
    const auto said = [&](DType dtype, std::vector<int64_t> shape) {
        return refusal(ErrorKind::BadData, [&] { load(model, options_for({{"x", dtype, std::move(shape)}}, 5)); });
    };
    for (const DType dtype : {DType::F64, DType::F16, DType::BF16}) {
        EXPECT_THAT(said(dtype, {4}), HasSubstr("[4]), but it takes x as float32: save it so, with NumPy "
                                                "x.astype(\"float32\")"));
        EXPECT_THAT(said(dtype, {4}), Not(HasSubstr("transform")));
    }
    EXPECT_THAT(said(DType::U8, {4}),
                HasSubstr("x.astype(\"float32\"), or have it read so by a [[data.transform]] with "
                          "scale = 0.00392156862745098"));
    EXPECT_THAT(said(DType::F64, {6}), Not(HasSubstr("as float32"))) << "it does not fit then either";
}

TEST(Probe, AnOpOfTheRootIsNamedToo) {
    const ModuleSpec model{"Model", "def forward(self, x):\n    return torch.mean(x.view([7, -1]))\n"};
    EXPECT_THAT(refusal(ErrorKind::BadData, [&] { load(model, kProbeOptions); }),
                HasSubstr("aten::view in the model's forward at <string>:2 fails"));
}

TEST(Probe, AModelOfOneSizeNamesTheSizesThatFit) {
    const ModuleSpec traced{"Model", "def forward(self, x):\n    return torch.mean(x.view([4, 4]))\n"};
    const std::string text = refusal(ErrorKind::BadData, [&] { load(traced, kProbeOptions); });
    EXPECT_THAT(text, HasSubstr("cannot take a microbatch of 5 samples"));
    EXPECT_THAT(text, HasSubstr("but it takes 4;"));
    EXPECT_THAT(text, HasSubstr("train.global_batch_size"));
    TorchScriptOptions fitting = kProbeOptions;
    fitting.microbatch_size = 4;
    EXPECT_NO_THROW(load(traced, fitting));
}

TEST(Probe, SizesThatHappenToAgreeAreNoneThatWereTraced) {
    const ModuleSpec mixes{"Model", "def forward(self, x):\n    return torch.mean(x * x.sum([1]))\n"};
    EXPECT_THAT(
        refusal(ErrorKind::BadData, [&] { load(mixes, kProbeOptions); }),
        HasSubstr("but it takes 1, 4, where the shapes happen to agree; no op of the model names such a size, so "
                  "look at this one first: it may mix samples"));
}

TEST(Probe, ABufferThatIsMadeForAnotherSizeIsNamed) {
    ModuleSpec keeps{"Model", "def forward(self, x):\n    return torch.mean(x * self.w + self.h)\n"};
    keeps.parameters = {{"w", weight({4})}};
    keeps.buffers = {{"h", values({2, 4})}};
    EXPECT_THAT(refusal(ErrorKind::BadData, [&] { load(keeps, kProbeOptions); }),
                HasSubstr("but it takes 1, 2; the buffer 'h' [2, 4] has that size: choose train.global_batch_size"));
}

TEST(Probe, SizesThatNothingNamesAreNotTried) {
    std::set<size_t> tried;
    TorchScriptOptions options = kProbeOptions;
    options.read_samples = [&](int, std::span<std::byte> out) { tried.insert(out.size() / (4 * sizeof(float))); };
    // Zeros are chosen by their numbers, which the meta device has not.
    const ModuleSpec model{"Model",
                           "def forward(self, x):\n    chosen = torch.nonzero(x)\n"
                           "    return torch.mean(x) + torch.mean(chosen.view([24, 2, 7]) * 1.0)\n"};
    refusal(ErrorKind::BadData, [&] { load(model, options); });
    EXPECT_THAT(tried, ::testing::IsSupersetOf({1U, 2U, 5U, 24U}));
    EXPECT_THAT(tried, ::testing::Not(::testing::Contains(128U)));
}

TEST(Probe, ShapesAreTriedWithoutNumbers) {
    const Probed probed = run(R"IR(
graph(%x : Tensor):
  %three : int = prim::Constant[value=3]()
  %four : int = prim::Constant[value=4]()
  %shape : int[] = prim::ListConstruct(%three, %four)
  %y : Tensor = aten::view(%x, %shape)
  return (%y))IR");
    const std::vector<ProbeInput> inputs{{probed.jit.graph->inputs()[0], floats("x", {4})}};
    EXPECT_TRUE(shapes_fit(probed.jit, inputs, 3, at::kCPU));
    EXPECT_FALSE(shapes_fit(probed.jit, inputs, 5, at::kCPU));
}

// The CPU casts by lists of its own; what it keeps is taken from how cards run it, where that is known.
TEST(Probe, WhatFailsUnderTheCastsOfCardsAloneRunsOnTheCpu) {
    TorchScriptOptions options = kProbeOptions;
    options.precision = "bf16";
    for (const char* op : {"torch.linalg_inv(torch.diag(x @ self.v) + torch.eye(5))", "torch.quantile(x @ self.w, 0.5)",
                           "torch.binary_cross_entropy(torch.sigmoid(x @ self.w), torch.ones([5, 4]))"}) {
        const ModuleSpec model{"Model",
                               std::string("def forward(self, x):\n    return torch.mean(") + op + ")\n",
                               {{"w", weight({4, 4})}, {"v", weight({4})}}};
        EXPECT_NO_THROW(load(model, options)) << op;
    }
}

/// Of forward's `output` and a field y.
std::string refused_loss(const std::string& kind, const std::string& output, const Field& y, int class_dim = 1) {
    TorchScriptOptions options = options_for({floats("x", {4}), y}, 5);
    options.loss = LossPlan{.kind = kind, .target = "y", .class_dim = class_dim};
    const ModuleSpec model{"Model", "def forward(self, x):\n    return " + output + "\n", {{"w", weight({4, 4})}}};
    return refusal(ErrorKind::BadData, [&] { load(model, options); });
}

// LibTorch spreads the shapes over each other: five values with five others each.
TEST(Probe, ALossByValueWantsOneShape) {
    for (const char* kind : {"mse", "l1", "bce_with_logits"}) {
        EXPECT_THAT(refused_loss(kind, "(x @ self.w)[:, :1]", floats("y", {})),
                    HasSubstr("loss.kind = \"" + std::string(kind) +
                              "\" compares value by value, but forward returns the shape [5, 1] and the field 'y' [5] "
                              "has another, which mixes samples or values; give both one shape, as by squeeze(-1), "
                              "unsqueeze(-1) or expand_as in forward (with a microbatch of 5 samples of x float32[4], "
                              "y float32[])"));
    }
    EXPECT_THAT(refused_loss("mse", "x @ self.w", floats("y", {})),
                HasSubstr("the shape [5, 4] and the field 'y' [5]"));
    EXPECT_THAT(refused_loss("bce_with_logits", "x @ self.w", floats("y", {1})),
                HasSubstr("[5, 4] and the field 'y' [5, 1]"));
}

TEST(Probe, ALossByValueMaySpreadInsideASample) {
    for (const auto& [output, y, samples] : {std::tuple{"x @ self.w", floats("y", {4}), 5},
                                             {"x @ self.w", floats("y", {1}), 5},
                                             {"torch.squeeze((x @ self.w)[:, :1])", floats("y", {}), 1}}) {
        TorchScriptOptions options = options_for({floats("x", {4}), y}, samples);
        options.loss = LossPlan{.kind = "mse", .target = "y"};
        const ModuleSpec model{
            "Model", std::string("def forward(self, x):\n    return ") + output + "\n", {{"w", weight({4, 4})}}};
        EXPECT_NO_THROW(load(model, options)) << output;
    }
}

TEST(Probe, ALossOverALossIsRefused) {
    for (const int class_dim : {1, -1}) {
        EXPECT_THAT(refused_loss("cross_entropy", "torch.mean(x @ self.w)", {"y", DType::I64, {}, 4}, class_dim),
                    HasSubstr("loss.kind = \"cross_entropy\" compares what forward returns with the field 'y' [5], but "
                              "that is a single number; if it is the loss, leave out [loss]"));
    }
}

TEST(Probe, AModelThatRaisesIsAnErrorOfTheModel) {
    const ModuleSpec model{"Model", R"JIT(
def forward(self, x):
    if x.size(1) < 100:
        prim.RaiseException("needs 100 columns")
    return torch.mean(x)
)JIT"};
    EXPECT_THAT(refusal(ErrorKind::BadData, [&] { load(model, kProbeOptions); }), HasSubstr("needs 100 columns"));
}

TEST(Probe, AGuardedRangeIsRunAsOnePiece) {
    const ModuleSpec model{"Model",
                           R"JIT(
def forward(self, x):
    h = torch.tanh(x * self.w)
    with OwnGuard():
        s = torch.sin(h)
        with OwnGuard():
            s = torch.cos(s)
        s = torch.abs(s)
    return torch.mean(h * s)
)JIT",
                           {{"w", weight({4})}}};
    const Graph graph = load(model, kProbeOptions).graph;
    const auto gradient_behind = [&](const std::string& kind) {
        const int value = graph.ops[static_cast<size_t>(op_of(graph, kind))].outputs.at(0);
        return graph.tensors[static_cast<size_t>(graph.values[static_cast<size_t>(value)].tensors.at(0))].requires_grad;
    };
    EXPECT_TRUE(gradient_behind("aten::tanh"));
    for (const char* inside : {"aten::sin", "aten::cos", "aten::abs"}) EXPECT_FALSE(gradient_behind(inside)) << inside;
    EXPECT_TRUE(gradient_behind("aten::mean"));
}

TEST(Probe, ABufferThatIsWrittenKeepsItsBytesInTheFile) {
    // The probe runs on the CPU here (nonzero has no meta form) and writes the buffer.
    ModuleSpec model{"Model", R"JIT(
def forward(self, x):
    self.seen.add_(1.0)
    n = torch.nonzero(self.seen).size(0)
    return torch.mean(x) * n
)JIT"};
    model.buffers = {{"seen", values({4})}};
    LoadedModel loaded = load(model, kProbeOptions);
    EXPECT_EQ(bits_of(loaded.source->weight(0)), bits_of(values({4})));
}

}  // namespace
}  // namespace vpp
