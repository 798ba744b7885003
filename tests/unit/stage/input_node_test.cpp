#include "stage/input_node.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>

#include "unit/stage/support.hpp"

namespace vpp::test {
namespace {

TEST(InputNode, givesEveryInputItsGradientBySlot) {
    const auto node = std::make_shared<InputNode>();
    const at::Tensor a = at::ones({3}), b = at::ones({2}), unused = at::ones({4});
    const uint32_t slot_a = node->attach(a), slot_b = node->attach(b), slot_unused = node->attach(unused);
    const at::Tensor out = a.sum() * 3 + b.sum() * 5;
    run_backward({edge_of(out)}, {at::ones_like(out)});
    EXPECT_EQ(form_of(node->gradients()[slot_a]), form_of(at::ones({}).mul(3).expand({3})));
    EXPECT_EQ(node->gradients()[slot_b][1].item<float>(), 5);
    EXPECT_FALSE(node->gradients()[slot_unused].defined()) << "a gradient that does not exist stays undefined";
}

TEST(InputNode, hasUndefinedGradientsBeforeBackward) {
    const auto node = std::make_shared<InputNode>();
    const uint32_t slot = node->attach(at::ones({3}));
    EXPECT_FALSE(node->gradients().at(slot).defined());
}

// What a leaf would refuse, and what AccumulateGrad would lay out anew.
TEST(InputNode, allowsInPlaceOpsOnInputsAndKeepsStrides) {
    const auto node = std::make_shared<InputNode>();
    at::Tensor input = at::ones({4, 6});
    const uint32_t slot = node->attach(input);
    input.mul_(2);
    const at::Tensor out = input.t();
    run_backward({edge_of(out)}, {at::arange(24, at::kFloat).view({6, 4})});
    const at::Tensor gradient = node->gradients()[slot];
    EXPECT_EQ(gradient.strides().vec(), (std::vector<int64_t>{1, 4}));
    EXPECT_EQ(gradient[1][0].item<float>(), 2);
}

TEST(InputNode, letsParametersAccumulateInTheSamePass) {
    const auto node = std::make_shared<InputNode>();
    at::Tensor input = at::ones({2}), weight = at::ones({2}).set_requires_grad(true);
    node->attach(input);
    for (int i = 0; i < 2; ++i) {
        const at::Tensor out = at::mul(input, weight).sum();
        run_backward({edge_of(out)}, {at::ones_like(out)});
    }
    EXPECT_EQ(weight.grad()[0].item<float>(), 2);
}

}  // namespace
}  // namespace vpp::test
