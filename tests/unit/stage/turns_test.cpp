#include "stage/turns.hpp"

#include <ATen/ops/_neg_view.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <array>

#include "unit/stage/support.hpp"

namespace vpp::test {
namespace {

// Their sum depends on the order: ((1e8 + -1e8) + 1) = 1, but ((1 + 1e8) + -1e8) = 0.
constexpr std::array<double, 4> kGradients{1e8, -1e8, 1, 0.5};

class Turns : public ::testing::Test {
  protected:
    at::Tensor parameter_ = at::zeros({2}).set_requires_grad(true);
    at::Tensor untouched_ = at::zeros({2}).set_requires_grad(true);
    GradientTurns turns_{{parameter_, untouched_}};

    /// A backward pass that gives one gradient, added as AccumulateGrad does.
    void backward(int microbatch) {
        turns_.run(microbatch, [&] {
            const at::Tensor gradient = at::ones({2}) * kGradients.at(static_cast<size_t>(microbatch));
            at::Tensor& sum = parameter_.mutable_grad();
            if (sum.defined())
                sum.add_(gradient);
            else
                sum = gradient;
        });
    }

    float sum_in_order(const std::vector<int>& order) {
        parameter_.mutable_grad().reset();
        turns_.begin_step();
        for (int microbatch : order) backward(microbatch);
        return parameter_.grad()[0].item<float>();
    }
};

TEST_F(Turns, addsInMicrobatchOrderWhateverTheOrderOfTheActions) {
    std::vector<int> order{0, 1, 2, 3};
    const float expected = sum_in_order(order);
    EXPECT_EQ(expected, 1.5f);
    while (std::next_permutation(order.begin(), order.end())) EXPECT_EQ(sum_in_order(order), expected);
}

// As the imaginary part of a conjugate gives one: its memory holds the other sign.
TEST_F(Turns, GradientsAreWhatTheirMemoryHolds) {
    turns_.begin_step();
    turns_.run(1, [&] { untouched_.mutable_grad() = at::_neg_view(at::ones({2})); });
    turns_.run(0, [&] { parameter_.mutable_grad() = at::_neg_view(at::ones({2})); });
    for (const at::Tensor& parameter : {parameter_, untouched_}) {
        EXPECT_FALSE(parameter.grad().is_neg());
        EXPECT_EQ(parameter.grad().const_data_ptr<float>()[0], -1.0f);
    }
}

// The control: without turns the same gradients in another order have another sum.
TEST_F(Turns, wouldDifferWithoutTurns) {
    float sum = 0;
    for (int microbatch : {2, 0, 1, 3}) sum += static_cast<float>(kGradients.at(static_cast<size_t>(microbatch)));
    EXPECT_NE(sum, sum_in_order({2, 0, 1, 3}));
}

TEST_F(Turns, countsWhatIsParked) {
    turns_.begin_step();
    backward(2);
    EXPECT_EQ(turns_.parked_bytes(), 8) << "one gradient of two floats; the undefined one counts nothing";
    backward(1);
    EXPECT_EQ(turns_.parked_bytes(), 16);
    EXPECT_FALSE(parameter_.grad().defined()) << "nothing is added before microbatch 0";
    backward(0);
    EXPECT_EQ(turns_.parked_bytes(), 0);
    EXPECT_EQ(parameter_.grad()[0].item<float>(), 1);
}

TEST_F(Turns, leavesGradientsUndefinedThatDoNotExist) {
    sum_in_order({3, 2, 1, 0});
    EXPECT_FALSE(untouched_.grad().defined());
}

TEST_F(Turns, keepsTheSumInItsMemory) {
    turns_.begin_step();
    backward(0);
    const void* memory = parameter_.grad().const_data_ptr();
    backward(2);
    EXPECT_EQ(parameter_.grad().const_data_ptr(), memory);
    backward(1);
    EXPECT_EQ(parameter_.grad().const_data_ptr(), memory);
}

TEST_F(Turns, refusesASecondBackwardAndAForgottenOne) {
    turns_.begin_step();
    backward(0);
    EXPECT_HAS(error_of(ErrorKind::Bug, [&] { backward(0); }), "one backward pass");
    backward(2);
    EXPECT_HAS(error_of(ErrorKind::Bug, [&] { backward(2); }), "one backward pass");
    EXPECT_HAS(error_of(ErrorKind::Bug, [&] { turns_.begin_step(); }), "every parked gradient");
}

}  // namespace
}  // namespace vpp::test
