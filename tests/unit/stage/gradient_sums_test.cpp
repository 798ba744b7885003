#include "stage/gradient_sums.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <optional>
#include <utility>

#include "stage/turns.hpp"
#include "unit/stage/support.hpp"

namespace vpp::test {
namespace {

constexpr float kMinusZero = -0.0F;

/// Two parameters whose recorded ops give the first one gradients.
class Sums {
  public:
    Sums()
        : parameters_{at::zeros({3}).set_requires_grad(true), at::zeros({2}).set_requires_grad(true)},
          sums_(parameters_) {
        given_ = sums_.record([&] {
            place_ = parameters_[0].grad();
            place_.add_(1);
        });
    }

    void begin_step() {
        sums_.begin_step();
        for (at::Tensor& parameter : parameters_) parameter.mutable_grad().reset();
    }
    void add(const at::Tensor& gradient) {
        sums_.add(given_, [&] { place_.add_(gradient); });
    }
    at::Tensor& gradient(size_t index) { return parameters_[index].mutable_grad(); }
    const std::vector<at::Tensor>& parameters() const { return parameters_; }
    const std::vector<size_t>& given() const { return given_; }

  private:
    std::vector<at::Tensor> parameters_;
    GradientSums sums_;
    at::Tensor place_;
    std::vector<size_t> given_;
};

TEST(GradientSums, RecordingTellsWhoGetsGradientsAndLeavesThemAsTheyWere) {
    Sums sums;
    EXPECT_EQ(sums.given(), std::vector<size_t>{0});
    EXPECT_FALSE(sums.gradient(0).defined());
    EXPECT_FALSE(sums.gradient(1).defined());
}

TEST(GradientSums, TheFirstGradientOfAStepHasItsOwnBits) {
    Sums sums;
    for (const float zero : {kMinusZero, 0.0F}) {
        sums.begin_step();
        const at::Tensor gradient = at::tensor({zero, 1e-42F, -3.5F});
        sums.add(gradient);
        EXPECT_EQ(form_of(sums.gradient(0)), form_of(gradient));
        EXPECT_FALSE(sums.gradient(1).defined());
    }
    sums.add(at::tensor({kMinusZero, 0.0F, 1.0F}));
    EXPECT_EQ(form_of(sums.gradient(0)), form_of(at::tensor({0.0F, 1e-42F, -2.5F}))) << "in the second step";
}

TEST(GradientSums, AddsToWhatOpsLeft) {
    Sums sums;
    sums.begin_step();
    const at::Tensor by_op = at::tensor({1.0F, 2.0F, 3.0F});
    sums.gradient(0) = by_op;
    sums.add(at::tensor({10.0F, 10.0F, 10.0F}));
    EXPECT_EQ(form_of(sums.gradient(0)), form_of(at::tensor({11.0F, 12.0F, 13.0F})));
}

TEST(GradientSums, GradientsThatWaitForTheirTurnStayApart) {
    Sums sums;
    const std::vector<float> values{1e8F, -1e8F, 0.25F};  // whose sum depends on the order
    for (const std::vector<int>& order : {std::vector{0, 1, 2}, {2, 0, 1}, {1, 2, 0}}) {
        sums.begin_step();
        GradientTurns turns(sums.parameters());
        turns.begin_step();
        for (int microbatch : order) {
            turns.run(microbatch, [&] { sums.add(at::zeros({3}) + values[static_cast<size_t>(microbatch)]); });
        }
        EXPECT_EQ(form_of(sums.gradient(0)), form_of(at::zeros({3}) + 0.25F));
    }
}

TEST(GradientSums, HaveTheLayoutThatAutogradGives) {
    const at::Tensor last = at::zeros({2, 3, 4, 4}).contiguous(at::MemoryFormat::ChannelsLast).set_requires_grad(true);
    const at::Tensor gaps = at::zeros({2, 6}).slice(1, 0, 3).detach().set_requires_grad(true);
    GradientSums sums({last, gaps});
    sums.record([&] {
        EXPECT_EQ(last.grad().strides(), last.strides());
        EXPECT_EQ(gaps.grad().strides(), (std::vector<int64_t>{3, 1}));
    });
}

}  // namespace
}  // namespace vpp::test
