#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "optim/rules.hpp"
#include "unit/optim/support.hpp"

namespace vpp {
namespace {

using test::doubles;
using test::values_of;

/// Adam on one number, as its papers write it.
struct ByHand {
    double parameter, m = 0, v = 0, largest_v = 0;
    int t = 0;
    void update(double gradient, const OptimizerValues& o, double lr, bool is_decoupled) {
        ++t;
        if (is_decoupled) parameter -= lr * o.weight_decay * parameter;
        const double g = is_decoupled ? gradient : gradient + o.weight_decay * parameter;
        m = o.beta1 * m + (1 - o.beta1) * g;
        v = o.beta2 * v + (1 - o.beta2) * g * g;
        largest_v = std::max(largest_v, v);
        const double v_hat = (o.amsgrad ? largest_v : v) / (1 - std::pow(o.beta2, t));
        parameter -= lr * (m / (1 - std::pow(o.beta1, t))) / (std::sqrt(v_hat) + o.eps);
    }
};

detail::UpdateBatch batch_of(const std::vector<at::Tensor>& parameters, bool amsgrad) {
    detail::UpdateBatch batch;
    batch.parameters = parameters;
    batch.slots.resize(amsgrad ? 4 : 3);
    for (const at::Tensor& parameter : parameters) {
        batch.slots[0].push_back(at::zeros({}, at::kFloat));
        for (size_t i = 1; i < batch.slots.size(); ++i) batch.slots[i].push_back(at::zeros_like(parameter));
    }
    return batch;
}

/// Largest distance of the kernel's parameters from the formula's after a few steps with changing rates.
double distance(bool is_decoupled, const OptimizerValues& values, int num_formula_steps = 4) {
    const std::vector<double> start = {0.5, -2.0, 1e-3};
    const std::vector<std::vector<double>> gradients = {
        {0.1, -3.0, 2e-4}, {-0.2, 0.0, 5e-4}, {0.01, 1.0, -1e-3}, {0.3, -0.5, 1e-6}};
    detail::UpdateBatch batch = batch_of({doubles(start)}, values.amsgrad);
    std::vector<ByHand> expected;
    for (const double x : start) expected.push_back({x});
    for (int t = 0; t < 4; ++t) {
        const double lr = 0.1 / (t + 1);
        batch.gradients = {doubles(gradients[static_cast<size_t>(t)])};
        (is_decoupled ? detail::update_adamw : detail::update_adam)(batch, values, lr);
        if (t >= num_formula_steps) continue;
        for (size_t i = 0; i < start.size(); ++i) {
            expected[i].update(gradients[static_cast<size_t>(t)][i], values, lr, is_decoupled);
        }
    }
    double largest = 0;
    const std::vector<double> got = values_of(batch.parameters[0]);
    for (size_t i = 0; i < start.size(); ++i) largest = std::max(largest, std::abs(got[i] - expected[i].parameter));
    EXPECT_EQ(batch.slots[0][0].item<float>(), 4);
    return largest;
}

TEST(Adam, FollowsTheFormulas) {
    for (const bool is_decoupled : {true, false}) {
        for (const bool amsgrad : {true, false}) {
            for (const double weight_decay : {0.0, 0.1}) {
                OptimizerValues values;
                values.beta1 = 0.8;
                values.beta2 = 0.95;
                values.amsgrad = amsgrad;
                values.weight_decay = weight_decay;
                EXPECT_LT(distance(is_decoupled, values), 1e-14) << is_decoupled << amsgrad << weight_decay;
                EXPECT_GT(distance(is_decoupled, values, 3), 1e-4) << "a step less must be seen";
            }
        }
    }
}

TEST(Adam, AWrongCountOfStepsHasOtherBits) {
    std::string bits[2];
    for (int wrong = 0; wrong < 2; ++wrong) {
        detail::UpdateBatch batch = batch_of({test::floats({1, 2, 3})}, false);
        batch.slots[0][0].fill_(wrong);
        batch.gradients = {test::floats({0.1F, 0.2F, 0.3F})};
        detail::update_adamw(batch, {}, 0.01);
        bits[wrong] = test::bits_of(batch.parameters[0]);
    }
    EXPECT_NE(bits[0], bits[1]);
}

TEST(Adam, ParametersInOneCallDoNotTouchEachOther) {
    detail::UpdateBatch both = batch_of({test::floats({1, 2}), test::floats({3})}, false);
    detail::UpdateBatch alone = batch_of({test::floats({3})}, false);
    both.gradients = {test::floats({5, 6}), test::floats({7})};
    alone.gradients = {test::floats({7})};
    detail::update_adam(both, {}, 0.1);
    detail::update_adam(alone, {}, 0.1);
    EXPECT_EQ(test::bits_of(both.parameters[1]), test::bits_of(alone.parameters[0]));
}

}  // namespace
}  // namespace vpp
