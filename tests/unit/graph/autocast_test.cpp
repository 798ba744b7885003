#include "graph/autocast.hpp"

#include <ATen/autocast_mode.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/function.h>

#include <thread>

#include "unit/graph/models.hpp"

namespace vpp {
namespace {

using namespace test;
using ::testing::HasSubstr;

at::ScalarType dtype_of_linear() {
    return at::linear(at::ones({2, 4}), at::ones({3, 4})).scalar_type();
}

TEST(Autocast, ThePlansWordsAreDtypes) {
    EXPECT_EQ(autocast_dtype("fp32"), std::nullopt);
    EXPECT_EQ(autocast_dtype("bf16"), at::kBFloat16);
    EXPECT_EQ(autocast_dtype("fp16"), at::kHalf);
    EXPECT_EQ(refusal(ErrorKind::Bug, [] { autocast_dtype("fp8"); }).empty(), false);
}

TEST(Autocast, CastsInsideAndLeavesEverythingAsItWas) {
    const at::ScalarType before = at::autocast::get_autocast_dtype(at::kCPU);
    {
        const AutocastScope outer(at::kCPU, at::kHalf);
        EXPECT_EQ(dtype_of_linear(), at::kHalf);
        {
            const AutocastScope inner(at::kCPU, at::kBFloat16);
            EXPECT_EQ(dtype_of_linear(), at::kBFloat16);
        }
        EXPECT_EQ(dtype_of_linear(), at::kHalf);
        const AutocastScope nothing(at::kCPU, std::nullopt);
        EXPECT_EQ(dtype_of_linear(), at::kHalf);
        std::thread([] { EXPECT_EQ(dtype_of_linear(), at::kFloat) << "it is this thread's"; }).join();
    }
    EXPECT_EQ(dtype_of_linear(), at::kFloat);
    EXPECT_EQ(at::autocast::get_autocast_dtype(at::kCPU), before);
    EXPECT_TRUE(at::autocast::is_autocast_cache_enabled());
}

/// Whether two uses of one parameter take the gradient through one cast.
bool share_a_cast() {
    const at::Tensor x = at::ones({2, 2}), w = at::ones({2, 2}).requires_grad_();
    const auto cast_of_weight = [&] { return at::mm(x, w).grad_fn()->next_edge(1).function; };
    const auto first = cast_of_weight();
    EXPECT_EQ(first->name(), "ToCopyBackward0");
    return first == cast_of_weight();
}

TEST(Autocast, EveryUseOfAParameterIsACastOfItsOwn) {
    const AutocastScope scope(at::kCPU, at::kBFloat16);
    EXPECT_FALSE(share_a_cast());
    at::autocast::set_autocast_cache_enabled(true);
    EXPECT_TRUE(share_a_cast()) << "that is what the cache would do";
    at::autocast::clear_cache();
}

TEST(Autocast, AnOpThatThePrecisionLacksIsNamed) {
    const ModuleSpec model{"Model",
                           R"JIT(
def forward(self, x):
    return torch.mean(torch.rrelu(torch.mm(x, self.w), 0.1, 0.3, True))
)JIT",
                           {{"w", weight({4, 4})}}};
    TorchScriptOptions options = options_for({floats("x", {4})}, 5);
    for (const char* works : {"fp32", "bf16"}) {
        options.precision = works;
        EXPECT_NO_THROW(load(model, options)) << works;
    }
    options.precision = "fp16";
    const std::string text = refusal(ErrorKind::BadData, [&] { load(model, options); });
    EXPECT_THAT(text, HasSubstr("the op aten::rrelu in the model's forward at <string>:3 fails: "));
    EXPECT_THAT(text, HasSubstr("not implemented for 'Half'"));
}

}  // namespace
}  // namespace vpp
