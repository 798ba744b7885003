// Deferred batch norm in the graph: which ops become deferred, what they add up, and what is refused with its place.
#include <ATen/TensorOperators.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/graph/models.hpp"

namespace vpp {
namespace {

using namespace test;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TorchScriptOptions options(bool deferred = true, bool training = true) {
    TorchScriptOptions options = options_for({floats("x", {4})}, 3);
    options.deferred_batch_norm = deferred;
    options.training = training;
    return options;
}

const at::Tensor kX = values({3, 4}, 2);

/// A model around the usual batch norm, `bn`; its method may be another one.
ModuleSpec model_with_norm(const std::string& code, const std::string& norm_code = "") {
    ModuleSpec model{"Model", code};
    model.children = {{"bn", batch_norm(4)}, {"l", linear(4, 4)}};
    if (!norm_code.empty()) model.children[0].second.code = norm_code;
    return model;
}

const char* const kOnce =
    "def forward(self, x):\n    return torch.mean(torch.sin(self.bn.forward(self.l.forward(x))))\n";
const char* const kTwice =
    "def forward(self, x):\n    return torch.mean(self.bn.forward(torch.tanh(self.bn.forward(x))))\n";

/// The method of a batch norm with this call of it.
std::string norm(const std::string& call, const std::string& before = "self.num_batches_tracked.add_(1)") {
    return "def forward(self, x):\n    " + before + "\n    return " + call + "\n";
}

int index_of_value(const Graph& graph, const std::string& name) {
    return static_cast<int>(&parameter_of(graph, name) - graph.parameters.data());
}

std::vector<std::string> kinds_of(const Graph& graph) {
    std::vector<std::string> kinds;
    for (const GraphOp& op : graph.ops) kinds.push_back(op.kind);
    return kinds;
}

TEST(BatchNorm, IsDeferredWithItsThreeBuffers) {
    const Graph graph = load(model_with_norm(kOnce), options()).graph;
    EXPECT_THAT(kinds_of(graph), ElementsAre("aten::linear", "vpp::deferred_batch_norm", "aten::sin", "aten::mean"))
        << "the counter's increment is gone";
    EXPECT_EQ(graph.ops[1].module, "bn");
    ASSERT_EQ(graph.deferred_batch_norms.size(), 1U);
    const DeferredBatchNorm expected{index_of_value(graph, "bn.running_mean"), index_of_value(graph, "bn.running_var"),
                                     index_of_value(graph, "bn.num_batches_tracked"), 0.1, false};
    EXPECT_EQ(graph.deferred_batch_norms[0], expected);
    for (const char* name : {"bn.running_mean", "bn.running_var", "bn.num_batches_tracked"}) {
        EXPECT_TRUE(parameter_of(graph, name).written) << name;
        EXPECT_THAT(parameter_of(graph, name).uses, ElementsAre(1)) << name;
    }
    EXPECT_EQ(graph.num_legal_cuts(), 3);
    EXPECT_TRUE(graph.warnings.empty());
}

TEST(BatchNorm, IsLeftAloneWithoutTheSettingAndInEvaluation) {
    const Graph plain = load(model_with_norm(kOnce), options(false)).graph;
    const Graph evaluation = load(model_with_norm(kOnce), options(true, false)).graph;
    for (const Graph* graph : {&plain, &evaluation}) {
        EXPECT_THAT(kinds_of(*graph), Contains("aten::batch_norm"));
        EXPECT_TRUE(graph->deferred_batch_norms.empty());
        EXPECT_TRUE(graph->warnings.empty());
    }
    EXPECT_EQ(load(model_with_norm(kOnce), options()).graph.digest, plain.digest) << "it is the same model";
}

/// Runs the whole graph `times` times over one set of weights, `bound` in the place of some; gives the last loss.
at::Tensor run_over(LoadedModel& model, const std::map<std::string, at::Tensor>& bound, int times,
                    const at::Tensor& x = kX) {
    const Graph& graph = model.graph;
    std::vector<int> parameters;
    std::vector<c10::IValue> weights;
    for (size_t i = 0; i < graph.parameters.size(); ++i) {
        if (graph.parameters[i].uses.empty()) continue;
        parameters.push_back(static_cast<int>(i));
        const auto other = bound.find(graph.parameters[i].name);
        weights.emplace_back(other == bound.end() ? model.source->weight(static_cast<int>(i)) : other->second);
    }
    const auto code = model.source->executable(
        {OpRange{0, graph.num_ops()}.list(), {graph.inputs[0].value}, parameters, {graph.loss}}, at::kCPU);
    at::Tensor loss;
    for (int i = 0; i < times; ++i) {
        std::vector<c10::IValue> arguments{x};
        arguments.insert(arguments.end(), weights.begin(), weights.end());
        loss = code->run(std::move(arguments), 0)[0].toTensor();
    }
    return loss;
}

struct Sums {
    at::Tensor sum = at::zeros({4}), squares = at::zeros({4}), count = at::zeros({}, at::kLong);
    std::map<std::string, at::Tensor> bound() const {
        return {{"bn.running_mean", sum}, {"bn.running_var", squares}, {"bn.num_batches_tracked", count}};
    }
};

TEST(BatchNorm, AddsSumsAndNormalisesAsBefore) {
    LoadedModel plain = load(model_with_norm(kTwice), options(false)),
                deferred = load(model_with_norm(kTwice), options());
    const Sums sums;
    const at::Tensor loss = run_over(deferred, sums.bound(), 2);
    EXPECT_EQ(bits_of(loss), bits_of(run_over(plain, {}, 2)));
    // The definition, call by call: x, then what the first call and tanh made of it.
    const at::Tensor x = kX, scale = weight({4}, 5), shift = weight({4}, 6);
    const at::Tensor second = at::batch_norm(x, scale, shift, {}, {}, true, 0, 1e-5, false).detach().tanh();
    const Sums expected;
    for (int run = 0; run < 2; ++run) {
        for (const at::Tensor& input : {x, second}) {
            expected.sum.add_(input.sum({0}));
            expected.squares.add_((input * input).sum({0}));
        }
    }
    EXPECT_EQ(bits_of(sums.sum), bits_of(expected.sum));
    EXPECT_EQ(bits_of(sums.squares), bits_of(expected.squares));
    EXPECT_EQ(sums.count.item<int64_t>(), 2 * 2 * 3);
}

TEST(BatchNorm, SumsOverAllDimensionsButTheChannels) {
    TorchScriptOptions images = options_for({floats("x", {4, 5, 2})}, 3);
    images.deferred_batch_norm = true;
    ModuleSpec spec = model_with_norm("def forward(self, x):\n    return torch.mean(torch.sin(self.bn.forward(x)))\n");
    LoadedModel model = load(spec, images);
    const at::Tensor x = values({3, 4, 5, 2});
    const Sums sums;
    run_over(model, sums.bound(), 1, x);
    EXPECT_EQ(bits_of(sums.sum), bits_of(x.sum({0, 2, 3})));
    EXPECT_EQ(bits_of(sums.squares), bits_of((x * x).sum({0, 2, 3})));
    EXPECT_EQ(sums.count.item<int64_t>(), 3 * 5 * 2);
}

TEST(BatchNorm, SumsOfHalvesAreThoseOfFloats) {
    LoadedModel model = load(model_with_norm("def forward(self, x):\n"
                                             "    return torch.mean(torch.sin(self.bn.forward(x)))\n"),
                             options());
    for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
        const at::Tensor x = (values({3, 4}, 2) + 300).to(type);  // squares beyond what a half can be
        const Sums sums;
        run_over(model, sums.bound(), 1, x);
        EXPECT_EQ(bits_of(sums.sum), bits_of(x.to(at::kFloat).sum({0})));
        EXPECT_EQ(bits_of(sums.squares), bits_of(x.to(at::kFloat).pow(2).sum({0})));
    }
}

TEST(BatchNorm, CallsOfOneModuleAreOneEntryInOneStage) {
    const Graph graph = load(model_with_norm(kTwice), options()).graph;
    EXPECT_EQ(graph.deferred_batch_norms.size(), 1U);
    const int middle = op_of(graph, "aten::tanh");
    EXPECT_FALSE(graph.cuts[static_cast<size_t>(middle)].legal);
    EXPECT_THAT(graph.cuts[static_cast<size_t>(middle)].reason, HasSubstr("is written in place"));
}

TEST(BatchNorm, TheCounterMayGoFromCallToCallAsInATrace) {
    ModuleSpec spec = model_with_norm(R"JIT(
def forward(self, x):
    y, count = self.bn.forward(x)
    return torch.mean(self.bn.second(count, torch.tanh(y)))
)JIT",
                                      R"JIT(
def norm(self, x):
    return torch.batch_norm(x, self.weight, self.bias, self.running_mean, self.running_var, True, 0.1, 1e-5, False)
def forward(self, x):
    count = self.num_batches_tracked.add_(1)
    return self.norm(x), count
def second(self, count, x):
    count.add_(1)
    return self.norm(x)
)JIT");
    const Graph graph = load(spec, options()).graph;
    EXPECT_EQ(graph.deferred_batch_norms.size(), 1U);
    EXPECT_THAT(kinds_of(graph),
                ElementsAre("vpp::deferred_batch_norm", "aten::tanh", "vpp::deferred_batch_norm", "aten::mean"));
}

TEST(BatchNorm, OfMomentumNoneIsCumulative) {
    const std::string code = norm(
        "torch.batch_norm(x, self.weight, self.bias, self.running_mean, self.running_var, self.training, "
        "1.0 / float(self.num_batches_tracked), 1e-5, False)");
    const Graph graph = load(model_with_norm(kOnce, code), options()).graph;
    EXPECT_EQ(kinds_of(graph).size(), 4U) << "its computation is gone with the counter's increment";
    ASSERT_EQ(graph.deferred_batch_norms.size(), 1U);
    EXPECT_TRUE(graph.deferred_batch_norms[0].cumulative);
}

TEST(BatchNorm, ThatKeepsNoStatisticsInTrainingIsLeftAlone) {
    const std::string frozen =
        "torch.batch_norm(x, self.weight, self.bias, self.running_mean, self.running_var, False, "
        "0.1, 1e-5, False)";
    const std::string without = "torch.batch_norm(x, self.weight, self.bias, None, None, True, 0.1, 1e-5, False)";
    for (const std::string& call : {frozen, without}) {
        const Graph graph = load(model_with_norm(kOnce, norm(call)), options()).graph;
        EXPECT_THAT(kinds_of(graph), Contains("aten::batch_norm"));
        EXPECT_THAT(kinds_of(graph), Contains("aten::add_")) << "the counter is the model's own then";
        EXPECT_THAT(graph.warnings,
                    Contains(HasSubstr("no batch norm of this model keeps running statistics in training")));
    }
}

TEST(BatchNorm, InstanceNormKeepsItsOwnStatistics) {
    TorchScriptOptions images = options_for({floats("x", {4, 5, 2})}, 3);
    images.deferred_batch_norm = true;
    const std::string code = norm(
        "torch.instance_norm(x, self.weight, self.bias, self.running_mean, self.running_var, True, 0.1, 1e-5, "
        "False)");
    const Graph graph =
        load(model_with_norm("def forward(self, x):\n    return torch.mean(torch.sin(self.bn.forward(x)))\n", code),
             images)
            .graph;
    EXPECT_TRUE(graph.deferred_batch_norms.empty());
    EXPECT_TRUE(parameter_of(graph, "bn.running_mean").written);
    EXPECT_THAT(graph.warnings, Contains(HasSubstr("deferred_batch_norm = true, but")));
}

std::string refused(const ModuleSpec& spec) {
    return refusal(ErrorKind::BadData, [&] { load(spec, options()); });
}

TEST(BatchNorm, IsRefusedWithItsPlaceAndReason) {
    const std::string usual =
        "torch.batch_norm(x, self.weight, self.bias, self.running_mean, self.running_var, "
        "self.training, 0.1, 1e-5, False)";
    const auto with = [&](const std::string& from, const std::string& to) {
        std::string call = usual;
        return refused(model_with_norm(kOnce, norm(call.replace(call.find(from), from.size(), to))));
    };
    EXPECT_THAT(with("0.1", "0.1 * x.size(0)"),
                AllOf(HasSubstr("the op aten::batch_norm in 'bn' at "), HasSubstr("its momentum is neither a number")));
    EXPECT_THAT(with("self.running_mean", "self.running_mean * 1"), HasSubstr("are no buffers of the model"));
    EXPECT_THAT(
        with("self.training", "bool(x.size(0) > 1)"),
        HasSubstr("cannot have its statistics deferred: whether it normalises by the microbatch is computed; leave "
                  "pipeline.deferred_batch_norm out"));
    EXPECT_THAT(with("self.running_mean, self.running_var", "self.running_var, self.running_mean"),
                HasSubstr("there is no counter for 'bn.running_var' (named as in torch.nn.BatchNorm: running_mean, "
                          "running_var and num_batches_tracked)"));
    EXPECT_THAT(
        refused(model_with_norm(kOnce, norm("torch.native_batch_norm(x, self.weight, self.bias, self.running_mean, "
                                            "self.running_var, True, 0.1, 1e-5)[0]"))),
        AllOf(HasSubstr("the op aten::native_batch_norm in 'bn' at "),
              HasSubstr("cannot have its statistics deferred: only aten::batch_norm can; leave ")));
    for (const char* other : {"self.running_mean", "self.running_var", "self.num_batches_tracked"}) {
        EXPECT_THAT(refused(model_with_norm(kOnce, norm(usual + " + " + other))),
                    AllOf(HasSubstr("the op aten::add in 'bn' at "), HasSubstr("has no value between")));
    }
    EXPECT_THAT(refused(model_with_norm(kOnce, norm(usual, "self.num_batches_tracked.add_(2)"))),
                HasSubstr("the op aten::add_ in 'bn'"));
    EXPECT_THAT(refused(model_with_norm(kOnce, norm(usual + " + torch.batch_norm(x, None, None, self.running_mean, "
                                                            "self.running_var, True, 0.2, 1e-5, False)"))),
                HasSubstr("with another momentum"));
}

}  // namespace
}  // namespace vpp
