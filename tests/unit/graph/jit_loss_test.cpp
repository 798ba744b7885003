// The loss: an output of forward, or ops behind one.
#include <ATen/TensorOperators.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/l1_loss.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/nll_loss.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/loss_kinds.hpp"
#include "unit/graph/models.hpp"

namespace vpp {
namespace {

using namespace test;
using ::testing::HasSubstr;

ModuleSpec tuple_model() {
    return {"Model", R"JIT(
def forward(self, x):
    h = torch.relu(x)
    return h, torch.mean(h), 3, torch.sum(h)
)JIT"};
}

TorchScriptOptions with_output(int output) {
    TorchScriptOptions options = options_for({floats("x", {4})});
    options.loss_output = output;
    return options;
}

TEST(Loss, AnOutputOfATupleIsChosen) {
    LoadedModel mean = load(tuple_model(), with_output(1)), sum = load(tuple_model(), with_output(3));
    const Inputs inputs{{"x", values({2, 4})}};
    const double a = run_in_pieces(mean, {}, inputs).item<double>(), b = run_in_pieces(sum, {}, inputs).item<double>();
    EXPECT_NEAR(a * 8, b, 1e-5);
    EXPECT_NE(a, b);
    EXPECT_EQ(mean.graph.num_ops(), sum.graph.num_ops()) << "ops that only other outputs need stay";
    EXPECT_NE(mean.graph.digest, load(tuple_model(), with_output(3)).graph.digest);
}

TEST(Loss, OtherOutputsAreGatheredByTheLastOpWhereAskedFor) {
    TorchScriptOptions options = with_output(1);
    const int num_ops = load(tuple_model(), options).graph.num_ops();
    options.keep_outputs = true;
    LoadedModel model = load(tuple_model(), options);
    const Graph& graph = model.graph;
    ASSERT_EQ(graph.outputs.size(), 2U) << "not the loss, not the number";
    EXPECT_EQ(graph.outputs[0].name, "output0");
    EXPECT_EQ(graph.outputs[1].name, "output3");
    EXPECT_EQ(graph.tensors[static_cast<size_t>(graph.outputs[0].tensor)].shape, (std::vector<int64_t>{2, 4}));
    EXPECT_EQ(graph.num_ops(), num_ops + 1);
    EXPECT_EQ(graph.ops.back().kind, "prim::TupleConstruct");
    ASSERT_EQ(graph.warnings.size(), 1U);
    EXPECT_THAT(graph.warnings[0], HasSubstr(": forward's output2 (int) is no tensor and is left out of the outputs"));
    const Inputs inputs{{"x", values({2, 4})}};
    for (int cut = 1; cut < graph.num_ops(); ++cut) {
        if (graph.cuts[static_cast<size_t>(cut)].legal) run_in_pieces(model, {cut}, inputs);
    }
}

TEST(Loss, AnOutputOfADictIsNamedByItsKey) {
    const ModuleSpec model{"Model", R"JIT(
def forward(self, x):
    h = torch.relu(x)
    return {"loss": torch.mean(h), "hidden": h, "sum": torch.sum(h)}
)JIT"};
    TorchScriptOptions options = with_output(0);
    const Inputs inputs{{"x", values({2, 4})}};
    LoadedModel plain = load(model, options), tuple = load(tuple_model(), with_output(1));
    EXPECT_EQ(run_in_pieces(plain, {}, inputs).item<double>(), run_in_pieces(tuple, {}, inputs).item<double>());
    options.keep_outputs = true;
    const LoadedModel kept = load(model, options);
    ASSERT_EQ(kept.graph.outputs.size(), 2U);
    EXPECT_EQ(kept.graph.outputs[0].name, "hidden");
    EXPECT_EQ(kept.graph.outputs[1].name, "sum");
}

TEST(Loss, OfAKeyThatIsThereTwiceTheLastValueCounts) {
    TorchScriptOptions options = with_output(0);
    options.keep_outputs = true;
    LoadedModel twice = load({"Model", R"JIT(
def forward(self, x):
    h = torch.relu(x)
    return {"loss": torch.mean(h), "hidden": h, "loss": torch.sum(h)}
)JIT"},
                             options);
    LoadedModel sum = load(tuple_model(), with_output(3));
    const Inputs inputs{{"x", values({2, 4})}};
    EXPECT_EQ(run_in_pieces(twice, {}, inputs).item<double>(), run_in_pieces(sum, {}, inputs).item<double>());
    ASSERT_EQ(twice.graph.outputs.size(), 1U);
    EXPECT_EQ(twice.graph.outputs[0].name, "hidden");
}

TEST(Loss, OutputsInsideContainersAreNamedByTheirWay) {
    TorchScriptOptions options = with_output(0);
    options.keep_outputs = true;
    const LoadedModel model = load({"Model", R"JIT(
def forward(self, x):
    h = torch.relu(x)
    return torch.mean(h), (h, [h + 1, h + 2]), {"a": torch.tanh(h)}
)JIT"},
                                   options);
    std::vector<std::string> names;
    for (const GraphOutput& output : model.graph.outputs) names.push_back(output.name);
    EXPECT_EQ(names, (std::vector<std::string>{"output1.0", "output1.1.0", "output1.1.1", "output2.a"}));
    EXPECT_TRUE(model.graph.warnings.empty());
}

// Somebody appends to the list behind the return value's back.
TEST(Loss, AListThatOthersSeeIsLeftWhole) {
    TorchScriptOptions options = with_output(0);
    options.keep_outputs = true;
    const LoadedModel model = load({"Model", R"JIT(
def forward(self, x):
    h = torch.relu(x)
    found = [h]
    if h.size(0) > 100:
        found.append(h)
    return torch.mean(h), found
)JIT"},
                                   options);
    EXPECT_LE(model.graph.outputs.size(), 1U) << "a branch on a size may be gone by then";
    EXPECT_EQ(model.graph.outputs.size() + model.graph.warnings.size(), 1U);
}

TEST(Loss, WithAnAppendedLossEveryOutputIsKept) {
    TorchScriptOptions options = options_for({floats("x", {4}), floats("y", {4})});
    options.inputs = {"x"};
    options.loss = LossPlan{.kind = "mse", .input = 0, .target = "y"};
    options.keep_outputs = true;
    const LoadedModel model = load(linear(4, 4), options);
    ASSERT_EQ(model.graph.outputs.size(), 1U);
    EXPECT_EQ(model.graph.outputs[0].name, "output0");
    EXPECT_EQ(model.graph.ops.back().module, "");
}

TEST(Loss, HitsAreCountedBehindTheOutputs) {
    TorchScriptOptions options = options_for({floats("x", {4}), integers("y", {})});
    options.inputs = {"x"};
    options.loss = LossPlan{.kind = "cross_entropy", .input = 0, .target = "y"};
    const LoadedModel plain = load(linear(4, 4), options);
    EXPECT_TRUE(plain.graph.tallies.empty());
    options.count_hits = true;
    const Graph counted = load(linear(4, 4), options).graph;
    EXPECT_TRUE(counted.outputs.empty());
    ASSERT_EQ(counted.tallies.size(), 2U);
    EXPECT_EQ(counted.tallies[0].name, "targets");
    EXPECT_EQ(counted.tallies[1].name, "hits");
    for (const GraphOutput& tally : counted.tallies) {
        EXPECT_TRUE(counted.tensors[static_cast<size_t>(tally.tensor)].shape.empty());
        EXPECT_EQ(counted.tensors[static_cast<size_t>(tally.tensor)].dtype, DType::I64);
    }
    EXPECT_EQ(counted.ops[counted.ops.size() - 2].module, "accuracy");
    options.keep_outputs = true;
    const Graph both = load(linear(4, 4), options).graph;
    EXPECT_EQ(both.outputs.size(), 1U);
    EXPECT_EQ(both.tallies.size(), 2U);
    EXPECT_EQ(both.outputs[0].name, "output0");
}

TEST(Loss, AModelThatGivesTheLossAloneHasNoOutputs) {
    TorchScriptOptions options = options_for({floats("x", {4})});
    options.keep_outputs = true;
    const ModuleSpec alone{"Model", "def forward(self, x):\n    return torch.mean(x)\n"};
    EXPECT_TRUE(load(alone, options).graph.outputs.empty());
    EXPECT_TRUE(load(tuple_model(), with_output(1)).graph.outputs.empty()) << "unless asked for";
}

TEST(Loss, AnOutputThatIsNotThereNamesTheKeyAndTheNumber) {
    for (int output : {4, -1}) {
        const std::string text = refusal(ErrorKind::BadData, [&] { load(tuple_model(), with_output(output)); });
        EXPECT_EQ(text,
                  "model.loss_output = " + std::to_string(output) + ", but forward returns 4 outputs, counted from 0");
    }
}

TEST(Loss, AnOutputThatIsNoNumberIsRefused) {
    EXPECT_EQ(refusal(ErrorKind::BadData, [] { load(tuple_model(), with_output(2)); }),
              "output 2 of forward is of type int, no tensor; set model.loss_output to the output that is wanted");
    EXPECT_EQ(refusal(ErrorKind::BadData, [] { load(tuple_model(), with_output(0)); }),
              "the loss must be one floating-point number (got float32[2, 4]); add a [loss] section, or set "
              "model.loss_output to the output that is the loss");
}

TEST(Loss, AForwardThatReturnsNothingIsRefused) {
    const ModuleSpec nothing{"Model", "def forward(self, x):\n    y = x * 2\n"};
    EXPECT_EQ(refusal(ErrorKind::BadData, [&] { load(nothing, options_for({floats("x", {4})})); }),
              "forward returns nothing; it must return the loss");
}

TEST(Loss, ATupleThatComesOutOfABranchIsTakenApart) {
    const ModuleSpec model{"Model", R"JIT(
def forward(self, x):
    if x.size(0) > 1:
        r = (x, torch.mean(x))
    else:
        r = (x, torch.sum(x))
    return r
)JIT"};
    LoadedModel loaded = load(model, with_output(1));
    EXPECT_EQ(bits_of(run_in_pieces(loaded, {}, {{"x", values({2, 4})}})), bits_of(values({2, 4}).mean()));
}

TorchScriptOptions with_loss(LossPlan loss, Field target) {
    TorchScriptOptions options = options_for({floats("x", {4}), std::move(target)});
    loss.target = "y";
    options.loss = std::move(loss);
    return options;
}

const ModuleSpec kIdentity{"Model", "def forward(self, x):\n    return x * 1.0\n"};

at::Tensor loss_of(const TorchScriptOptions& options, const at::Tensor& x, const at::Tensor& y) {
    LoadedModel loaded = load(kIdentity, options);
    EXPECT_EQ(loaded.graph.ops.back().module, "loss");
    EXPECT_EQ(loaded.graph.inputs.size(), 2U);
    return run_in_pieces(loaded, {1}, {{"x", x}, {"y", y}});
}

LossPlan of_kind(const std::string& kind) {
    LossPlan loss = {};
    loss.kind = kind;
    return loss;
}

TEST(Loss, EveryKindIsTheFunctionOfThatName) {
    const at::Tensor x = values({2, 4}), same = values({2, 4}, 3).abs(), classes = at::tensor({1L, 3L});
    const Field like_x = floats("y", {4}), label = integers("y", {});
    EXPECT_EQ(loss_kinds(), (std::vector<std::string>{"cross_entropy", "mse", "nll", "bce_with_logits", "l1"}));
    EXPECT_EQ(bits_of(loss_of(with_loss(of_kind("cross_entropy"), label), x, classes)),
              bits_of(at::cross_entropy_loss(x, classes)));
    EXPECT_EQ(bits_of(loss_of(with_loss(of_kind("mse"), like_x), x, same)), bits_of(at::mse_loss(x, same)));
    EXPECT_EQ(bits_of(loss_of(with_loss(of_kind("nll"), label), x, classes)), bits_of(at::nll_loss(x, classes)));
    EXPECT_EQ(bits_of(loss_of(with_loss(of_kind("bce_with_logits"), like_x), x, same)),
              bits_of(at::binary_cross_entropy_with_logits(x, same)));
    EXPECT_EQ(bits_of(loss_of(with_loss(of_kind("l1"), like_x), x, same)), bits_of(at::l1_loss(x, same)));
}

TEST(Loss, ReductionIgnoredIndexAndSmoothingArePassedOn) {
    const at::Tensor x = values({2, 4}), classes = at::tensor({1L, 3L});
    LossPlan loss = of_kind("cross_entropy");
    loss.ignore_index = 3;
    loss.label_smoothing = 0.25;
    TorchScriptOptions options = with_loss(loss, integers("y", {}));
    const at::Tensor mean = loss_of(options, x, classes);
    EXPECT_EQ(bits_of(mean), bits_of(at::cross_entropy_loss(x, classes, {}, 1, 3, 0.25)));
    EXPECT_NE(bits_of(mean), bits_of(at::cross_entropy_loss(x, classes)));
    options.loss_reduction = "sum";
    EXPECT_EQ(bits_of(loss_of(options, x, classes)), bits_of(at::cross_entropy_loss(x, classes, {}, 2, 3, 0.25)));
}

// As language models have it; along dimension 1 the op sums in another order.
TEST(Loss, ClassesAlongTheLastDimensionAreFlattenedToARowForEachTarget) {
    const at::Tensor x = values({2, 3, 5}), classes = at::tensor({1L, 3L, 0L, 4L, 2L, 3L}).view({2, 3});
    const Field scores = floats("x", {3, 5});
    for (const std::string kind : {"cross_entropy", "nll"}) {
        LossPlan loss = of_kind(kind);
        loss.class_dim = -1;
        loss.ignore_index = 3;
        TorchScriptOptions options = with_loss(loss, integers("y", {3}));
        options.fields.fields[0] = scores;
        const at::Tensor rows = x.flatten(0, 1);
        EXPECT_EQ(bits_of(loss_of(options, x, classes)),
                  bits_of(kind == "nll" ? at::nll_loss(rows, classes.flatten(), {}, 1, 3)
                                        : at::cross_entropy_loss(rows, classes.flatten(), {}, 1, 3)));
    }
    LossPlan loss = of_kind("cross_entropy");
    loss.class_dim = -1;
    TorchScriptOptions options = with_loss(loss, floats("y", {3, 5}));
    options.fields.fields[0] = scores;
    const at::Tensor shares = values({2, 3, 5}, 3).softmax(2);
    EXPECT_EQ(bits_of(loss_of(options, x, shares)),
              bits_of(at::cross_entropy_loss(x.flatten(0, 1), shares.flatten(0, 1))));
}

// So that a mean over the targets of more microbatches can be made of it.
TEST(Loss, ForwardsOwnBecomesASumForAMeanOverTargets) {
    const at::Tensor x = values({2, 5}), classes = at::tensor({1L, 3L});
    const auto loss_bits = [&](const std::string& text) {
        TorchScriptOptions options;
        options.fields = {{floats("x", {5}), integers("y", {})}, 8};
        options.loss_reduction = "target_mean";
        LoadedModel loaded = load({"Model", "def forward(self, x, y):\n    " + text + "\n"}, options);
        return bits_of(run_in_pieces(loaded, {}, {{"x", x}, {"y", classes}}));
    };
    const std::string sum = bits_of(at::cross_entropy_loss(x, classes, {}, 2, 3)),
                      loss = "torch.cross_entropy_loss(x, y, ";
    EXPECT_EQ(loss_bits("return " + loss + "None, 1, 3)"), sum);
    EXPECT_EQ(loss_bits("return " + loss + "None, 2, 3)"), sum);
    EXPECT_EQ(loss_bits("return " + loss + "None, 1, 3), x"), sum) << "beside other outputs";
    using Texts = std::pair<std::string, std::string>;
    for (const auto& [text, reason] :
         {Texts{"return 2 * " + loss + "None, 1, 3)", "it comes from aten::mul"},
          Texts{"return torch.mean(x)", "it comes from aten::mean"},
          Texts{"return " + loss + "torch.ones([5]), 1, 3)", "its classes have weights"},
          Texts{"l = " + loss + "None, 1, 3)\n    return l, l + 1", "forward takes it for something else too"}}) {
        EXPECT_THAT(
            refusal(ErrorKind::Plan, [&] { loss_bits(text); }),
            HasSubstr("needs a loss that forward returns as cross_entropy or nll_loss gives it, without weights of "
                      "classes (" +
                      reason + "); let forward return its scores"));
    }
}

/// How many targets count, and hits, of a model that is called with such inputs.
std::pair<int64_t, int64_t> tally(LoadedModel loaded, const at::Tensor& x, const at::Tensor& classes) {
    std::vector<int> wanted;
    for (const GraphOutput& output : loaded.graph.tallies) {
        const auto& values = loaded.graph.values;
        const auto made = std::ranges::find(values, std::vector<int>{output.tensor}, &GraphValue::tensors);
        wanted.push_back(static_cast<int>(made - values.begin()));
    }
    const auto found = run_whole(loaded, wanted, {{"x", x}, {"y", classes}});
    return {found.at(0).toTensor().item<int64_t>(), found.at(1).toTensor().item<int64_t>()};
}

TEST(Loss, HitsAreCountedAlongTheClasses) {
    const at::Tensor x = values({2, 3, 5}), classes = at::tensor({1L, 3L, 0L, 4L, 2L, 3L}).view({2, 3});
    const int64_t hits = (x.argmax(2).eq(classes) & classes.ne(3)).sum().item<int64_t>();
    const ModuleSpec flattens{"Model", "def forward(self, x):\n    return x.flatten(0, 1)\n"};
    for (const int class_dim : {1, -1}) {
        LossPlan loss = of_kind("cross_entropy");
        loss.class_dim = class_dim;
        loss.ignore_index = 3;
        TorchScriptOptions options = with_loss(loss, integers("y", {3}));
        options.fields.fields[0] =
            floats("x", class_dim == 1 ? std::vector<int64_t>{5, 3} : std::vector<int64_t>{3, 5});
        options.count_hits = true;
        const at::Tensor scores = class_dim == 1 ? x.transpose(1, 2).contiguous() : x;
        EXPECT_EQ(tally(load(kIdentity, options), scores, classes), (std::pair<int64_t, int64_t>{4, hits}));
        if (class_dim == 1) continue;
        EXPECT_EQ(tally(load(flattens, options), scores, classes), (std::pair<int64_t, int64_t>{4, hits}));
    }
}

TEST(Loss, ATargetThatForwardTakesTooIsOneInput) {
    const ModuleSpec model{"Model", "def forward(self, x, y):\n    return x + y\n"};
    LoadedModel loaded = load(model, with_loss(of_kind("mse"), floats("y", {4})));
    EXPECT_EQ(loaded.graph.inputs.size(), 2U);
    const at::Tensor x = values({2, 4}), y = values({2, 4}, 1);
    EXPECT_EQ(bits_of(run_in_pieces(loaded, {1}, {{"x", x}, {"y", y}})), bits_of(at::mse_loss(x + y, y)));
}

TEST(Loss, AnInputOrTargetThatIsNotThereIsNamed) {
    LossPlan loss = of_kind("mse");
    loss.input = 1;
    EXPECT_THAT(refusal(ErrorKind::BadData, [&] { load(kIdentity, with_loss(loss, floats("y", {4}))); }),
                HasSubstr("loss.input = 1, but forward returns 1 output, counted from 0"));
    EXPECT_THAT(refusal(ErrorKind::Plan, [&] { load(kIdentity, with_loss(of_kind("mse"), floats("z", {4}))); }),
                HasSubstr("loss.target = 'y' is no field of the data"));
}

}  // namespace
}  // namespace vpp
