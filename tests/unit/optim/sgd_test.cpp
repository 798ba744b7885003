#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/linspace.h>
#include <gtest/gtest.h>

#include <cmath>

#include "optim/rules.hpp"
#include "unit/optim/support.hpp"

namespace vpp {
namespace {

using test::doubles;
using test::values_of;

/// Three updates of one number with gradients 1, -2, 4 at rate 0.5; all values are exact in binary.
std::vector<double> train_by_hand(const OptimizerValues& values, const std::vector<bool>& is_first) {
    detail::UpdateBatch batch;
    batch.parameters = {doubles({8})};
    // The first update must not look at what was in the buffer.
    if (values.momentum != 0) batch.slots = {{at::full_like(batch.parameters[0], NAN)}};
    const double gradients[] = {1, -2, 4};
    std::vector<double> got;
    for (size_t i = 0; i < 3; ++i) {
        batch.gradients = {doubles({gradients[i]})};
        batch.is_first = is_first[i];
        detail::update_sgd(batch, values, 0.5);
        got.push_back(values_of(batch.parameters[0])[0]);
    }
    return got;
}

TEST(Sgd, Plain) {
    EXPECT_EQ(train_by_hand({}, {true, false, false}), (std::vector<double>{7.5, 8.5, 6.5}));
    EXPECT_EQ(train_by_hand({}, {true, true, true}), (std::vector<double>{7.5, 8.5, 6.5}));
}

TEST(Sgd, WeightDecayIsPartOfTheGradient) {
    OptimizerValues values;
    values.weight_decay = 0.5;
    // 8 - 0.5 (1 + 4) = 5.5; 5.5 - 0.5 (-2 + 2.75) = 5.125; 5.125 - 0.5 (4 + 2.5625) = 1.84375
    EXPECT_EQ(train_by_hand(values, {true, false, false}), (std::vector<double>{5.5, 5.125, 1.84375}));
}

TEST(Sgd, MomentumStartsWithTheWholeGradient) {
    OptimizerValues values;
    values.momentum = 0.5;
    values.dampening = 0.25;
    // buffers: 1; 0.5 - 1.5 = -1; -0.5 + 3 = 2.5
    EXPECT_EQ(train_by_hand(values, {true, false, false}), (std::vector<double>{7.5, 8, 6.75}));
}

TEST(Sgd, Nesterov) {
    OptimizerValues values;
    values.momentum = 0.5;
    values.nesterov = true;
    // buffers: 1; -1.5; 3.25. steps: 1 + 0.5; -2 - 0.75; 4 + 1.625
    EXPECT_EQ(train_by_hand(values, {true, false, false}), (std::vector<double>{7.25, 8.625, 5.8125}));
}

TEST(Sgd, AFirstUpdateThatIsNotMarkedIsSeen) {
    OptimizerValues values;
    values.momentum = 0.5;
    EXPECT_TRUE(std::isnan(train_by_hand(values, {false, false, false})[2]));
    EXPECT_NE(train_by_hand(values, {true, true, false}), train_by_hand(values, {true, false, false}));
}

/// Parameters of a vector kernel's blocks and of what is left behind them, with gradients and buffers of momentum.
detail::UpdateBatch hundred_of(at::ScalarType dtype) {
    detail::UpdateBatch batch;
    batch.parameters = {at::linspace(-1, 1, 100).to(dtype)};
    batch.gradients = {at::linspace(2, -1, 100).to(dtype)};
    batch.slots = {{at::linspace(0.5, 1, 100).to(dtype)}};
    return batch;
}

// Expected: the same numbers in float32, rounded once.
TEST(Sgd, HalfPrecisionIsComputedInFloat32) {
    OptimizerValues values;
    values.momentum = 0.5;
    values.nesterov = true;
    values.weight_decay = 0.125;
    for (at::ScalarType dtype : {at::kBFloat16, at::kHalf}) {
        const detail::UpdateBatch half = hundred_of(dtype);
        detail::UpdateBatch wide;
        wide.parameters = {half.parameters[0].to(at::kFloat)};
        wide.gradients = {half.gradients[0].to(at::kFloat)};
        wide.slots = {{half.slots[0][0].to(at::kFloat)}};
        const at::Tensor before = half.parameters[0].clone();
        detail::update_sgd(half, values, 0.25);
        detail::update_sgd(wide, values, 0.25);
        EXPECT_EQ(test::bits_of(half.parameters[0]), test::bits_of(wide.parameters[0].to(dtype)));
        EXPECT_EQ(test::bits_of(half.slots[0][0]), test::bits_of(wide.slots[0][0].to(dtype)));
        EXPECT_GT(half.parameters[0].ne(before).sum().item<int64_t>(), 90);
    }
}

// Fails with a LibTorch that has mended it; update_in_float32 can go then.
TEST(Sgd, LibTorchsKernelLosesUpdatesOfHalfPrecision) {
    const detail::UpdateBatch batch = hundred_of(at::kBFloat16);
    const at::Tensor before = batch.parameters[0].clone();
    at::_fused_sgd_(batch.parameters, batch.gradients, {}, 0, 0, 0.25, 0, false, false, false, std::nullopt,
                    std::nullopt);
    EXPECT_LT(batch.parameters[0].ne(before).sum().item<int64_t>(), 50);
}

}  // namespace
}  // namespace vpp
