#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/graph/models.hpp"

namespace vpp {
namespace {

using namespace test;
using ::testing::HasSubstr;

const TorchScriptOptions kMeanOptions = options_for({floats("x", {4})});

ModuleSpec model_with_mean(const std::string& lines) {
    ModuleSpec model{"Model", "def forward(self, x):\n    h = torch.tanh(torch.linear(x, self.w))\n" + lines};
    model.parameters = {{"w", weight({4, 4})}};
    model.buffers = {{"mean", values({4})}};
    return model;
}

TEST(AssignedBuffers, TakeTheValue) {
    const Inputs inputs{{"x", values({2, 4})}};
    for (const char* lines : {R"(
    old = self.mean
    y = h * self.mean
    self.mean = 0.9 * self.mean + 0.1 * h.detach().mean([0])
    y = torch.sin(y) * self.mean + old
    return torch.mean(y)
)",
                              R"(
    if bool(h.sum() > -100.):
        self.mean = self.mean * 0.5
    for i in range(x.size(0)):
        h = h * self.mean
        self.mean = self.mean + h[i].detach()
    return torch.mean(torch.cos(h) * self.mean)
)",
                              R"(
    self.mean = x[0]
    return torch.mean(torch.cos(h) * self.mean)
)"}) {
        const Graph graph = load_exactly(model_with_mean(lines), kMeanOptions, inputs);
        EXPECT_TRUE(parameter_of(graph, "mean").written) << lines;
        EXPECT_TRUE(graph.cuts[1].legal) << lines;
    }
}

TEST(AssignedBuffers, AreNotWrittenInPlaceToo) {
    for (const char* lines : {"    self.mean.mul_(0.9)\n    self.mean = self.mean + h[0].detach()\n",
                              "    self.mean = h[0].detach()\n    self.mean.mul_(0.9)\n",
                              "    old = self.mean\n    self.mean = h[0].detach()\n    old[0] = 0.5\n",
                              "    new = h[0].detach() * 0.5\n    self.mean = new\n    new += 1.0\n"}) {
        const ModuleSpec model = model_with_mean(lines + std::string("    return torch.mean(h * self.mean)\n"));
        const std::string text = refusal(ErrorKind::BadData, [&] { load(model, kMeanOptions); });
        EXPECT_THAT(text, HasSubstr("forward assigns the buffer 'mean', and elsewhere writes in place into what it has "
                                    "or gets, by the op aten::"))
            << lines;
        EXPECT_THAT(text, HasSubstr(" in the model's forward at ")) << lines;
    }
}

TEST(AssignedBuffers, TakeNothingButTheirOwnForm) {
    const auto text_of = [](const std::string& value) {
        const ModuleSpec model =
            model_with_mean("    self.mean = " + value + "\n    return torch.mean(h * self.mean)\n");
        return refusal(ErrorKind::BadData, [&] { load(model, kMeanOptions); });
    };
    EXPECT_THAT(text_of("h.mean([0])"), HasSubstr("the model assigns self.mean a tensor with a gradient"));
    for (const char* value : {"x", "x[0].to(7)", "torch.cat([x[0], x[1]])[::2]"}) {
        EXPECT_THAT(text_of(value),
                    HasSubstr("the model assigns self.mean a tensor that has another dtype, shape or memory layout"))
            << value;
    }
}

TEST(AssignedBuffers, HaveOneName) {
    const at::Tensor shared = values({4});
    ModuleSpec inner{"Inner", "def forward(self, x):\n    self.mean = x[0]\n    return x\n", {}, {{"mean", shared}}};
    ModuleSpec model{"Model", "def forward(self, x):\n    return torch.mean(self.inner.forward(x) * self.mean)\n"};
    model.buffers = {{"mean", shared}};
    model.children = {{"inner", inner}};
    EXPECT_THAT(refusal(ErrorKind::BadData, [&] { load(model, kMeanOptions); }),
                HasSubstr("forward assigns the attribute 'mean' of 'inner'"));
}

}  // namespace
}  // namespace vpp
