// The front end as a whole: files, arguments, weights, digests, size.
#include "graph/torchscript.hpp"

#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include "unit/graph/models.hpp"

namespace vpp {
namespace {

using namespace test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const TorchScriptOptions kLoadOptions = options_for({floats("x", {4}), floats("targets", {4})});

ModuleSpec two_layers(int seed = 0) {
    ModuleSpec model{"Model", "def forward(self, x):\n    return torch.mean(self.b.forward(self.a.forward(x)))\n"};
    model.children = {{"a", linear(4, 4, seed)}, {"b", linear(4, 4, seed + 2)}};
    return model;
}

std::string read(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

/// A file with one bit of these bytes flipped; they must be in it once.
std::filesystem::path flip(const std::filesystem::path& path, const std::string& where) {
    std::string bytes = read(path);
    const size_t at = bytes.find(where);
    EXPECT_NE(at, std::string::npos);
    EXPECT_EQ(bytes.find(where, at + 1), std::string::npos);
    bytes[at + 1] ^= 1;
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    return path;
}

int index_of(const Graph& graph, const std::string& name) {
    for (size_t i = 0; i < graph.parameters.size(); ++i) {
        if (graph.parameters[i].name == name) return static_cast<int>(i);
    }
    return -1;
}

LoadedModel open(const std::filesystem::path& path, const TorchScriptOptions& options = kLoadOptions) {
    return load_torchscript(std::make_shared<const Archive>(path), options);
}

TEST(TorchScript, EvaluationRunsItsOwnFileWithTheWeightsOfTraining) {
    ModuleSpec twin = two_layers(4);
    twin.code = "def forward(self, x):\n    return torch.sum(self.b.forward(self.a.forward(x)))\n";
    ModelFiles files(std::make_shared<const Archive>(save(two_layers())));
    files.evaluation = std::make_shared<const ModelFiles>(std::make_shared<const Archive>(save(twin)));
    TorchScriptOptions options = kLoadOptions;
    LoadedModel training = load_torchscript(files, options);
    EXPECT_EQ(training.graph.digest, load(two_layers(), options).graph.digest) << "a twin is nothing to training";
    options.training = false;
    LoadedModel evaluation = load_torchscript(files, options);
    EXPECT_EQ(labels_of(evaluation.graph).back(), "aten::sum ");
    for (size_t i = 0; i < training.graph.parameters.size(); ++i) {
        const int parameter = static_cast<int>(i);
        EXPECT_EQ(evaluation.graph.parameters[i].name, training.graph.parameters[i].name);
        EXPECT_EQ(bits_of(evaluation.source->weight(parameter)), bits_of(training.source->weight(parameter)));
    }
    const at::Tensor x = values({2, 4});
    twin = two_layers();
    twin.code = "def forward(self, x):\n    return torch.sum(self.b.forward(self.a.forward(x)))\n";
    LoadedModel alone = load(twin, options);
    EXPECT_EQ(bits_of(run_in_pieces(evaluation, {}, {{"x", x}})), bits_of(run_in_pieces(alone, {}, {{"x", x}})));
    Digest digest;
    EXPECT_NE(open_torchscript(files, options, digest), nullptr);
    EXPECT_EQ(digest, evaluation.graph.digest) << "what ranks compare";
}

TEST(TorchScript, WhatIsWrongWithTheFileForEvaluationSaysSo) {
    ModuleSpec twin = two_layers(4);
    twin.code = "def forward(self, x):\n    return self.b.forward(self.a.forward(x))\n";  // no loss
    ModelFiles files(std::make_shared<const Archive>(save(two_layers())));
    const auto path = save(twin);
    files.evaluation = std::make_shared<const ModelFiles>(std::make_shared<const Archive>(path));
    TorchScriptOptions options = kLoadOptions;
    EXPECT_NO_THROW(load_torchscript(files, options));
    options.training = false;
    try {
        load_torchscript(files, options);
        ADD_FAILURE() << "evaluation has no loss";
    } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("for evaluations (" + path.string() + "): the loss must be "));
    }
}

TEST(TorchScript, WeightsAreThoseOfTheFileAndFresh) {
    LoadedModel model = load(two_layers(), kLoadOptions);
    const at::Tensor first = model.source->weight(index_of(model.graph, "b.weight"));
    EXPECT_EQ(bits_of(first), bits_of(weight({4, 4}, 2)));
    EXPECT_TRUE(first.requires_grad());
    first.detach().zero_();
    EXPECT_EQ(bits_of(model.source->weight(index_of(model.graph, "b.weight"))), bits_of(weight({4, 4}, 2)));
}

TEST(TorchScript, AFlippedBitInAWeightIsFoundByThatWeightOnly) {
    const auto path = flip(save(two_layers()), bits_of(weight({4, 4}, 2)));
    LoadedModel model = open(path);  // loading reads no weight
    EXPECT_THAT(refusal(ErrorKind::BadData, [&] { model.source->weight(index_of(model.graph, "b.weight")); }),
                HasSubstr("is damaged"));
    for (const char* name : {"a.weight", "a.bias", "b.bias"}) {
        EXPECT_NO_THROW(model.source->weight(index_of(model.graph, name))) << name;
    }
}

TEST(TorchScript, ATruncatedModelIsRefused) {
    const auto path = save(two_layers());
    const std::string bytes = read(path);
    for (size_t length : {size_t{0}, size_t{100}, bytes.size() / 2, bytes.size() - 1}) {
        std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes.substr(0, length);
        refusal(ErrorKind::BadData, [&] { open(path); });
    }
}

TEST(TorchScript, StridesViewsAndEmptyTensorsComeBack) {
    const at::Tensor base = values({6, 4});
    ModuleSpec model{"Model",
                     "def forward(self, x):\n    return torch.mean(x * self.row) + torch.sum(self.t) + "
                     "torch.sum(self.empty)\n"};
    model.buffers = {{"t", base.t()}, {"row", base[3]}, {"empty", values({0, 3})}, {"half", base.to(at::kBFloat16)}};
    LoadedModel loaded = load(model, kLoadOptions);
    const auto weight_of = [&](const char* name) { return loaded.source->weight(index_of(loaded.graph, name)); };
    EXPECT_EQ(weight_of("t").strides(), (std::vector<int64_t>{1, 4}));
    EXPECT_EQ(bits_of(weight_of("t")), bits_of(base.t()));
    EXPECT_EQ(bits_of(weight_of("row")), bits_of(base[3])) << "an offset into the same record";
    EXPECT_EQ(weight_of("empty").sizes(), (std::vector<int64_t>{0, 3}));
    EXPECT_EQ(bits_of(weight_of("half")), bits_of(base.to(at::kBFloat16)));
}

ModuleSpec optional_targets() {
    return {"Model",
            R"JIT(
def forward(self, x, targets: Optional[Tensor] = None):
    if targets is not None:
        loss = torch.mse_loss(x * self.w, targets)
    else:
        loss = torch.mean(x * self.w)
    return loss
)JIT",
            {{"w", weight({4})}}};
}

TEST(TorchScript, AnOptionalArgumentIsGivenOrNot) {
    EXPECT_THAT(labels_of(load(optional_targets(), kLoadOptions).graph),
                ElementsAre("prim::unchecked_cast ", "aten::mul ", "aten::mse_loss "))
        << "the data has the field";
    TorchScriptOptions options = kLoadOptions;
    options.inputs = {"x"};
    const Graph graph = load(optional_targets(), options).graph;
    EXPECT_THAT(labels_of(graph), ElementsAre("aten::mul ", "aten::mean ")) << "the plan names one field";
    EXPECT_EQ(graph.inputs.size(), 1U);
    EXPECT_THAT(labels_of(load(optional_targets(), options_for({floats("x", {4})})).graph),
                ElementsAre("aten::mul ", "aten::mean "))
        << "the data has no such field";
    options.inputs = {"targets", "x"};
    EXPECT_EQ(load(optional_targets(), options).graph.inputs[0].name, "targets") << "the plan's order decides";
}

TEST(TorchScript, ArgumentsOfOneFieldAreWhatEqualFieldsAre) {
    const ModuleSpec model{"Model",
                           "def forward(self, x, targets):\n    h = torch.relu(x * self.w)\n    targets.add_(1)\n"
                           "    return torch.mse_loss(h * self.w, targets)\n",
                           {{"w", weight({4})}}};
    TorchScriptOptions options = options_for({floats("x", {4}), floats("y", {4})});
    const at::Tensor x = values({2, 4});
    options.inputs = {"x", "y"};
    LoadedModel equal = load(model, options);
    options.inputs = {"x", "x"};
    LoadedModel same = load(model, options);
    ASSERT_EQ(same.graph.inputs.size(), 2U);
    EXPECT_EQ(same.graph.inputs[1].name, "x");
    for (int cut = 1; cut < same.graph.num_ops(); ++cut) {
        EXPECT_EQ(bits_of(run_in_pieces(same, {cut}, {{"x", x.clone()}})),
                  bits_of(run_in_pieces(equal, {cut}, {{"x", x.clone()}, {"y", x.clone()}})));
    }
}

TEST(TorchScript, OtherDefaultsFoldAway) {
    const ModuleSpec model{"Model", R"JIT(
def forward(self, x, scale: float = 2.0, flip: bool = False):
    if flip:
        x = -x
    return torch.mean(x * scale)
)JIT"};
    LoadedModel loaded = load(model, kLoadOptions);
    EXPECT_THAT(labels_of(loaded.graph), ElementsAre("aten::mul ", "aten::mean "));
    const at::Tensor x = values({2, 4});
    EXPECT_EQ(bits_of(run_in_pieces(loaded, {1}, {{"x", x}})), bits_of((x * 2.0).mean()));
}

TEST(TorchScript, MissingFieldsAndTooManyNamesAreExplained) {
    const ModuleSpec model{"Model", "def forward(self, image, x):\n    return torch.mean(x * image)\n"};
    std::string text = refusal(ErrorKind::BadData, [&] { load(model, kLoadOptions); });
    EXPECT_THAT(text, HasSubstr("argument 'image'"));
    EXPECT_THAT(text, HasSubstr("it has: x, targets"));
    EXPECT_THAT(text, HasSubstr("model.inputs"));
    TorchScriptOptions options = kLoadOptions;
    options.inputs = {"x", "targets", "x"};
    text = refusal(ErrorKind::BadData, [&] { load(model, options); });
    EXPECT_THAT(text, HasSubstr("names 3 fields, but forward takes 2"));
}

TEST(TorchScript, ATargetThatIsNoFieldIsAMistakeOfThePlan) {
    TorchScriptOptions options = kLoadOptions;
    options.loss = LossPlan{"mse", 0, "target"};
    options.where = [](const std::string& key) {
        EXPECT_EQ(key, "loss.target");
        return SourcePosition{"plan.toml", 11, 10, ""};
    };
    try {
        load({"Model", "def forward(self, x):\n    return x * 2\n"}, options);
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::Plan);
        EXPECT_EQ(error.problems().front().message,
                  "loss.target = 'target' is no field of the data (they have x, targets); did you mean 'targets'?");
        EXPECT_EQ(error.problems().front().position->line, 11);
    }
    options.loss->target = "targets";
    EXPECT_NO_THROW(load({"Model", "def forward(self, x):\n    return x * 2\n"}, options));
}

TEST(TorchScript, AModelThatComputesNothingIsRefused) {
    const ModuleSpec model{"Model", "def forward(self, x):\n    return x\n"};
    EXPECT_THAT(refusal(ErrorKind::BadData, [&] { load(model, kLoadOptions); }),
                HasSubstr(": the model computes nothing"));
}

TEST(TorchScript, TheDigestFollowsWeightsGraphAndMode) {
    const auto digest = [](const ModuleSpec& spec, bool training = true) {
        TorchScriptOptions options = kLoadOptions;
        options.training = training;
        return load(spec, options).graph.digest;
    };
    const Digest same = digest(two_layers());
    EXPECT_EQ(digest(two_layers()), same) << "another export of the same model";
    EXPECT_NE(digest(two_layers(1)), same);
    ModuleSpec other = two_layers();
    other.code = "def forward(self, x):\n    return torch.sum(self.b.forward(self.a.forward(x)))\n";
    EXPECT_NE(digest(other), same);
    other = two_layers();
    other.children.emplace_back("drop", dropout());
    other.code = "def forward(self, x):\n    return torch.mean(self.drop.forward(self.b.forward(self.a.forward(x))))\n";
    EXPECT_NE(digest(other, true), digest(other, false));
}

TEST(TorchScript, ASecondReadingGivesTheSameSource) {
    const auto archive = std::make_shared<const Archive>(save(two_layers()));
    LoadedModel model = load_torchscript(archive, kLoadOptions);
    Digest digest;
    LoadedModel again{model.graph, open_torchscript(archive, kLoadOptions, digest)};
    EXPECT_EQ(digest, model.graph.digest);
    const Inputs inputs{{"x", values({2, 4})}};
    EXPECT_EQ(bits_of(run_in_pieces(again, {1}, inputs)), bits_of(run_in_pieces(model, {2}, inputs)));
}

TEST(TorchScript, OptionsComeFromThePlan) {
    Plan plan;
    plan.model.inputs = {"a"};
    plan.model.loss_output = 2;
    plan.model.loss_reduction = "sum";
    plan.loss = LossPlan{"mse", 1, "y"};
    const TorchScriptOptions options = torchscript_options(plan, kLoadOptions.fields, 8, false, at::kCPU);
    EXPECT_EQ(options.inputs, plan.model.inputs);
    EXPECT_EQ(options.loss_output, 2);
    EXPECT_EQ(options.loss_reduction, "sum");
    EXPECT_EQ(options.loss->kind, "mse");
    EXPECT_EQ(options.microbatch_size, 8);
    EXPECT_FALSE(options.training);
}

/// As tracing writes it, with the flags of cuDNN: its own choice of kernels, any of them, cuDNN at all, TF32.
TEST(TorchScript, AConvolutionOfATraceHasNoSettingsOfItsOwn) {
    const ModuleSpec model{"Model",
                           "def forward(self, x):\n"
                           "    y = torch._convolution(x, self.w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, "
                           "True, False, True, True)\n    return torch.mean(y)\n",
                           {{"w", weight({2, 3, 3, 3})}}};
    const Graph graph = load(model, options_for({floats("x", {3, 8, 8})})).graph;
    const auto number = [&](const std::string& kind) {
        return std::ranges::count(graph.ops, kind, [](const GraphOp& op) { return op.kind; });
    };
    EXPECT_EQ(number("aten::conv2d"), 1);
    EXPECT_EQ(number("aten::_convolution"), 0);
}

/// `count` blocks of four ops: linear, batch norm's counter and itself, in-place ReLU.
ModuleSpec deep_model(int count, bool in_place) {
    std::vector<ModuleSpec> blocks;
    for (int i = 0; i < count; ++i) {
        const std::string act = in_place ? "torch.relu_" : "torch.relu";
        ModuleSpec block{"Block",
                         "def forward(self, x):\n    return " + act + "(self.bn.forward(self.fc.forward(x)))\n"};
        block.children = {{"fc", linear(4, 4, i)}, {"bn", batch_norm(4)}};
        blocks.push_back(std::move(block));
    }
    ModuleSpec model{"Model", "def forward(self, x):\n    return torch.mean(self.blocks.forward(x))\n"};
    model.children = {{"blocks", sequential(std::move(blocks))}};
    return model;
}

TEST(TorchScript, TwoThousandOpsAreLabelledAndCut) {
    const Graph graph = load(deep_model(500, true), kLoadOptions).graph;
    EXPECT_EQ(graph.num_ops(), 2001);
    EXPECT_EQ(graph.ops[1999].module, "blocks.499");
    EXPECT_EQ(graph.num_legal_cuts(), 2000) << "what is written in place is alone at every cut";
    EXPECT_EQ(graph.parameters.size(), 500U * 7);
}

TEST(TorchScript, TheFirstSamplesAreReadWhereAnOpTakesNoZeros) {
    const ModuleSpec model{"Model", R"JIT(
def forward(self, x):
    longest = int(torch.max(x))
    return torch.mean(torch.view(x, [x.size(0), longest]))
)JIT"};
    TorchScriptOptions options = options_for({floats("x", {4})}, 2);
    EXPECT_THAT(refusal(ErrorKind::BadData, [&] { load(model, options); }),
                HasSubstr("shape '[2, 0]' is invalid for input of size 8"));

    int num_read = 0;
    float longest = 4;
    options.read_samples = [&](int field, std::span<std::byte> out) {
        EXPECT_EQ(field, 0);
        std::vector<float> values(out.size() / sizeof(float), 1);
        for (size_t i = 4; i < values.size(); i += 8) std::fill_n(values.begin() + i, 4, longest);
        std::memcpy(out.data(), values.data(), out.size());
        ++num_read;
    };
    const LoadedModel loaded = load(model, options);
    EXPECT_EQ(num_read, 1);
    EXPECT_EQ(loaded.graph.ops.back().kind, "aten::mean");

    longest = 3;
    EXPECT_THAT(refusal(ErrorKind::BadData, [&] { load(model, options); }),
                HasSubstr("shape '[2, 3]' is invalid for input of size 8"));
    num_read = 0;
    load(two_layers(), options);
    EXPECT_EQ(num_read, 0);
}

TEST(TorchScript, AnArgumentThatIsNoTensorTakesNoField) {
    const auto model = [](const std::string& argument) {
        return ModuleSpec{"Model", "def forward(self, x, " + argument + "):\n    return torch.mean(x * n)\n"};
    };
    const TorchScriptOptions options = options_for({floats("x", {4}), floats("n", {4})});
    EXPECT_THAT(
        refusal(ErrorKind::BadData, [&] { load(model("n: int"), options); }),
        HasSubstr("forward's argument 'n' is a int, and data fields are tensors; let forward take a tensor for"));
    const ModuleSpec of_dict{"Model",
                             "def forward(self, batch: Dict[str, Tensor]):\n    return torch.mean(batch[\"x\"])\n"};
    EXPECT_THAT(refusal(ErrorKind::BadData, [&] { load(of_dict, options); }),
                HasSubstr("forward's argument 'batch' is a Dict[str, Tensor], and data fields are tensors"))
        << "before the field that is missing";
    EXPECT_EQ(load(model("n: int = 3"), options).graph.inputs.size(), 1U) << "it has its default";
    EXPECT_EQ(load(model("n"), options).graph.inputs.size(), 2U);
}

}  // namespace
}  // namespace vpp
