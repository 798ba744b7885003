#include <ATen/ops/full_like.h>
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

}  // namespace
}  // namespace vpp
