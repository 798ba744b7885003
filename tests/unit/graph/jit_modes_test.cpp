// What ops run under where the model's code says so, and that a cut may lie inside.
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/graph/models.hpp"

namespace vpp {
namespace {

using namespace test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const TorchScriptOptions kModeOptions = options_for({floats("x", {4})});

ModuleSpec model_of(const std::string& code) {
    return {"Model", code, {{"w", weight({4, 4})}}};
}

const GraphTensor& made_by(const Graph& graph, const std::string& kind, int from = 0) {
    const int value = graph.ops[static_cast<size_t>(op_of(graph, kind, from))].outputs.at(0);
    return graph.tensors[static_cast<size_t>(graph.values[static_cast<size_t>(value)].tensors.at(0))];
}

/// The loss with a cut before op `cut`; 0: without one.
std::string bits_with_cut(LoadedModel& model, int cut) {
    std::vector<int> cuts;
    if (cut > 0) cuts.push_back(cut);
    return bits_of(run_in_pieces(model, cuts, {{"x", values({2, 4})}}));
}

void expect_cuts_everywhere(const std::string& code, const TorchScriptOptions& options = kModeOptions) {
    LoadedModel model = load(model_of(code), options);
    const std::string whole = bits_with_cut(model, 0);
    for (int cut = 1; cut < model.graph.num_ops(); ++cut) {
        EXPECT_TRUE(model.graph.cuts[static_cast<size_t>(cut)].legal) << "cut " << cut << " of " << code;
        EXPECT_EQ(bits_with_cut(model, cut), whole) << "cut " << cut << " of " << code;
    }
    for (const GraphOp& op : model.graph.ops) EXPECT_THAT(op.kind, HasSubstr("aten::")) << "only what computes is left";
}

constexpr const char* kNoGradRange = R"JIT(
def forward(self, x):
    h = torch.tanh(torch.mm(x, self.w))
    with NoGrad():
        s = torch.sin(h)
        with NoGrad():
            s = torch.cos(s)
        s = torch.abs(s)
    return torch.mean(h * s)
)JIT";

TEST(Modes, NothingInANoGradRangeHasAGradient) {
    const Graph graph = load(model_of(kNoGradRange), kModeOptions).graph;
    EXPECT_TRUE(made_by(graph, "aten::tanh").requires_grad);
    for (const char* inside : {"aten::sin", "aten::cos", "aten::abs"}) {
        EXPECT_FALSE(made_by(graph, inside).requires_grad) << inside;
    }
    EXPECT_TRUE(made_by(graph, "aten::mean").requires_grad);
    expect_cuts_everywhere(kNoGradRange);
}

TEST(Modes, WhatSetGradEnabledTurnsOffStaysOffBehindACut) {
    constexpr const char* kSet = R"JIT(
def forward(self, x):
    h = torch.tanh(torch.mm(x, self.w))
    before = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    s = torch.sin(h)
    s = torch.cos(s)
    torch.set_grad_enabled(before)
    return torch.mean(h * s)
)JIT";
    const Graph graph = load(model_of(kSet), kModeOptions).graph;
    for (const char* inside : {"aten::sin", "aten::cos"}) EXPECT_FALSE(made_by(graph, inside).requires_grad) << inside;
    EXPECT_TRUE(made_by(graph, "aten::mul").requires_grad);
    expect_cuts_everywhere(kSet);
}

TEST(Modes, AutocastHoldsForItsRangeOnly) {
    constexpr const char* kCast = R"JIT(
def forward(self, x):
    a = torch.mm(x, self.w)
    with Autocast("cpu", 15):
        b = torch.mm(a, self.w)
        with Autocast("cpu", None, False):
            c = torch.mm(a.float(), self.w)
            with Autocast("cpu"):
                d = torch.mm(a, self.w)
        e = torch.mm(a, self.w)
    f = torch.mm(a, self.w)
    return torch.mean(a + b + c + d + e + f)
)JIT";
    const auto dtypes = [](const Graph& graph) {
        std::vector<DType> found;
        for (size_t op = 0; op < graph.ops.size(); ++op) {
            if (graph.ops[op].kind == "aten::mm") {
                found.push_back(made_by(graph, "aten::mm", static_cast<int>(op)).dtype);
            }
        }
        return found;
    };
    const DType f32 = DType::F32, bf16 = DType::BF16, f16 = DType::F16;
    EXPECT_THAT(dtypes(load(model_of(kCast), kModeOptions).graph), ElementsAre(f32, bf16, f32, bf16, bf16, f32));
    expect_cuts_everywhere(kCast);
    TorchScriptOptions options = kModeOptions;
    options.precision = "fp16";
    EXPECT_THAT(dtypes(load(model_of(kCast), options).graph), ElementsAre(f16, bf16, f32, bf16, bf16, f16));
    expect_cuts_everywhere(kCast, options);
    // A card is followed without one; there the range, which names the CPU, is of another device.
    options.device = at::Device(at::kCUDA, 0);
    EXPECT_THAT(dtypes(load(model_of(kCast), options).graph), ElementsAre(f16, f16, f16, f16, f16, f16));
}

// As Python's guard, which gives back only whether ops are cast.
TEST(Modes, GradientsThatAreTurnedOffInARangeOfAutocastStayOffBehindIt) {
    constexpr const char* kSet = R"JIT(
def forward(self, x):
    h = torch.mm(x, self.w)
    with Autocast("cpu", 15):
        torch.set_grad_enabled(False)
        s = torch.mm(h, self.w)
    t = torch.addmm(h, h, self.w)
    torch.set_grad_enabled(True)
    return torch.mean(h * t + s)
)JIT";
    const Graph graph = load(model_of(kSet), kModeOptions).graph;
    EXPECT_FALSE(made_by(graph, "aten::addmm").requires_grad);
    EXPECT_EQ(made_by(graph, "aten::addmm").dtype, DType::F32) << "the casts end with the range";
    EXPECT_TRUE(made_by(graph, "aten::mean").requires_grad);
    expect_cuts_everywhere(kSet);
    const Graph other = load(model_of(R"JIT(
def forward(self, x):
    h = torch.mm(x, self.w)
    with NoGrad():
        with Autocast("cpu", 15):
            torch.set_grad_enabled(True)
        s = torch.sin(h)
    return torch.mean(torch.cos(h) + s)
)JIT"),
                             kModeOptions)
                            .graph;
    EXPECT_TRUE(made_by(other, "aten::sin").requires_grad);
    EXPECT_TRUE(made_by(other, "aten::cos").requires_grad);
}

TEST(Modes, AutocastForACardIsFollowedWithoutOne) {
    TorchScriptOptions options = kModeOptions;
    options.device = at::Device(at::kCUDA, 0);
    const Graph graph = load(model_of(R"JIT(
def forward(self, x):
    a = torch.mm(x, self.w)
    with Autocast("cuda"):
        b = torch.softmax(torch.mm(a, self.w), 1)
        with Autocast("cuda", 6):
            c = torch.addmm(a, a, self.w)
        with Autocast(str(x.device.type), None, False):
            d = torch.matmul(a, self.w)
    return torch.mean(a + b + c + d)
)JIT"),
                             options)
                            .graph;
    EXPECT_EQ(made_by(graph, "aten::mm").dtype, DType::F32);
    EXPECT_EQ(made_by(graph, "aten::mm", op_of(graph, "aten::mm") + 1).dtype, DType::F16) << "what a card has unasked";
    EXPECT_EQ(made_by(graph, "aten::softmax").dtype, DType::F32) << "by the lists of cards";
    EXPECT_EQ(made_by(graph, "aten::addmm").dtype, DType::F32) << "there is no autocast to float32";
    EXPECT_EQ(made_by(graph, "aten::matmul").dtype, DType::F32);
}

TEST(Modes, BranchesAndLoopsHaveTheirOwn) {
    constexpr const char* kInside = R"JIT(
def forward(self, x):
    h = torch.mm(x, self.w)
    s = h
    t = h
    for i in range(x.size(0)):
        with NoGrad():
            s = torch.sin(s)
            if i > 0:
                with Autocast("cpu", 15):
                    t = torch.mm(s, self.w)
            t = t * 1.0
        t = t.float() + h
    return torch.mean(h * s + t)
)JIT";
    LoadedModel model = load(model_of(kInside), kModeOptions);
    EXPECT_EQ(made_by(model.graph, "aten::mean").dtype, DType::F32);
    EXPECT_TRUE(made_by(model.graph, "aten::mean").requires_grad);
    const std::string whole = bits_with_cut(model, 0);
    for (int cut = 1; cut < model.graph.num_ops(); ++cut) {
        if (!model.graph.cuts[static_cast<size_t>(cut)].legal) continue;
        EXPECT_EQ(bits_with_cut(model, cut), whole) << cut;
    }
    // The control: without the range inside of the branch the bits are others.
    std::string plain = kInside;
    plain.replace(plain.find("15"), 2, "6");
    LoadedModel other = load(model_of(plain), kModeOptions);
    EXPECT_NE(bits_with_cut(other, 0), whole);
}

TEST(Modes, TheThreadIsLeftAsItWas) {
    for (const char* code : {kNoGradRange, R"JIT(
def forward(self, x):
    h = torch.mm(x, self.w)
    with NoGrad():
        with Autocast("cpu", 15):
            s = torch.mm(h, torch.tanh(self.w))
            torch.zeros([x.size(0)]).view([2])
    return torch.mean(h * s)
)JIT"}) {
        LoadedModel model = load(model_of(code), kModeOptions);
        for (int64_t samples : {2, 3}) {  // three of them have no view of two
            try {
                run_in_pieces(model, {}, {{"x", values({samples, 4})}});
            } catch (const std::exception&) {
                EXPECT_EQ(samples, 3);
            }
            EXPECT_TRUE(at::GradMode::is_enabled());
            EXPECT_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
            EXPECT_TRUE(at::autocast::is_autocast_cache_enabled());
        }
    }
}

TEST(Modes, EvaluationHasNoGradientsToTurnOn) {
    TorchScriptOptions options = kModeOptions;
    options.training = false;
    LoadedModel model = load(model_of(kNoGradRange), options);
    const at::NoGradGuard no_grad;
    bits_with_cut(model, 0);
    EXPECT_FALSE(at::GradMode::is_enabled());
}

TEST(Modes, EvaluationWritesIntoParametersToo) {
    TorchScriptOptions options = kModeOptions;
    options.training = false;
    const Graph graph = load(model_of(R"JIT(
def forward(self, x):
    with NoGrad():
        self.w.mul_(0.9)
    return torch.mean(torch.mm(x, self.w))
)JIT"),
                             options)
                            .graph;
    EXPECT_TRUE(parameter_of(graph, "w").written);
    EXPECT_FALSE(made_by(graph, "aten::mm").requires_grad);
}

TEST(Modes, EvaluationTakesTheGradientsThatForwardTakes) {
    constexpr const char* kForces = R"JIT(
def forward(self, x):
    place = torch.mm(x, self.w)
    energy = torch.sum(torch.tanh(place))
    force = torch.autograd.grad([energy], [place])[0]
    assert force is not None
    return torch.mean(torch.sin(force))
)JIT";
    TorchScriptOptions options = kModeOptions;
    LoadedModel training = load(model_of(kForces), options);
    options.training = false;
    LoadedModel evaluation = load(model_of(kForces), options);
    const std::string bits = bits_with_cut(training, 0);
    const at::NoGradGuard no_grad;
    EXPECT_EQ(bits_with_cut(evaluation, 0), bits);
    EXPECT_FALSE(at::GradMode::is_enabled());
}

TEST(Modes, WhatFollowsTheDataIsRefusedWithItsPlace) {
    const auto text = [](const std::string& lines) {
        return refusal(ErrorKind::BadData, [&] { load(model_of("def forward(self, x):\n" + lines), kModeOptions); });
    };
    EXPECT_THAT(
        text("    torch.set_grad_enabled(bool(torch.sum(x) > 0))\n    return torch.mean(torch.mm(x, self.w))\n"),
        HasSubstr("the op aten::set_grad_enabled in the model's forward at <string>:2: whether "
                  "gradients are recorded must be known before the model runs"));
    EXPECT_THAT(text("    h = torch.mm(x, self.w)\n    if bool(torch.sum(x) > 0):\n"
                     "        torch.set_grad_enabled(False)\n    return torch.mean(h)\n"),
                HasSubstr("turns gradients on or off and leaves them so"));
    EXPECT_THAT(text("    with Autocast(\"cpu\", 15, bool(torch.sum(x) > 0)):\n        h = torch.mm(x, self.w)\n"
                     "    return torch.mean(h)\n"),
                HasSubstr("whether torch.autocast is on must be known"));
    EXPECT_THAT(text("    with Autocast(\"cpu\", x.size(0)):\n        h = torch.mm(x, self.w)\n"
                     "    return torch.mean(h)\n"),
                HasSubstr("the dtype of torch.autocast must be known"));
}

}  // namespace
}  // namespace vpp
