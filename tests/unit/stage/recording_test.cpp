// On a card: recordings of ops that a test knows, each by itself. When they are made and used: recordings_test.cpp.
#include "stage/recording.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <utility>

#include "device/device.hpp"
#include "stage/not_recordable.hpp"
#include "support/far_device.hpp"
#include "unit/stage/support.hpp"

namespace vpp::test {
namespace {

at::Tensor four_of(double value) {
    return at::full({4}, value, at::TensorOptions(at::kFloat).device(test_device()));
}

/// y = x * weight, of which the gradients are g * weight and g * x.
class RecordingOnCards : public testing::Test {
  protected:
    void SetUp() override {
        if (!test_device().is_cuda()) GTEST_SKIP() << "a card is needed";
        start_device(test_device());
        weight_ = four_of(3).set_requires_grad(true);
        sums_ = std::make_unique<GradientSums>(std::vector{weight_});
        ops_.forward = [this](Microbatch& now, bool) {
            now.tensors[kOutput] = now.inputs.tensors.at(kInput) * weight_.detach();
            now.pass.emplace().tensors[kInput] = now.inputs.tensors.at(kInput);
        };
        ops_.input_gradients = [this](Microbatch& now) {
            if (now.saved) now.pass.emplace().tensors[kInput] = std::exchange(now.saved, {})->tensors.at(kInput);
            now.input_gradients[kInput] = now.arrived.at(kOutput) * weight_.detach();
            now.pass->tensors[kOutput] = now.arrived.at(kOutput);
        };
        ops_.weight_gradients = [this](Microbatch& now) {
            weight_.mutable_grad().add_(now.pass->tensors.at(kInput) * now.pass->tensors.at(kOutput));
            now.pass.reset();
        };
        ops_.backward = [this](Microbatch& now) {
            ops_.input_gradients(now);
            ops_.weight_gradients(now);
        };
        ops_.save = [](const PassInputs& inputs) { return inputs; };
        ops_.writes = [](int) { return false; };
    }

    static constexpr int kInput = 0, kOutput = 1;

    static MicrobatchForm form(bool is_recomputed = false, bool is_split = false) {
        MicrobatchForm form;
        form.note_inputs(given(0));
        form.arrived = gradient_forms_of({{kOutput, four_of(0)}});
        form.is_recomputed = is_recomputed;
        form.is_split = is_split;
        return form;
    }

    std::unique_ptr<Recording> recording(MicrobatchForm form) {
        const at::NoGradGuard no_grad;
        return std::make_unique<Recording>(std::move(form), test_device(), shared_, *sums_, ops_);
    }

    static PassInputs given(double value) {
        PassInputs inputs;
        inputs.tensors[kInput] = four_of(value);
        return inputs;
    }

    static const void* place_of(const std::unique_ptr<Recording>& recording) {
        return recording->inputs().tensors.at(kInput).const_data_ptr();
    }

    static Microbatch begun(Recording& recording, double x) {
        Microbatch now;
        now.inputs = given(x);
        recording.forward(now);
        EXPECT_EQ(form_of(now.tensors.at(kOutput)), form_of(four_of(3 * x)));
        return now;
    }

    void expect_backward(Recording& recording, Microbatch now, double x, double gradient) {
        begin_step();
        now.arrived[kOutput] = four_of(gradient);
        recording.backward(now);
        EXPECT_EQ(form_of(now.input_gradients.at(kInput)), form_of(four_of(3 * gradient)));
        EXPECT_EQ(form_of(weight_.grad()), form_of(four_of(x * gradient)));
    }

    /// Of microbatches of 5 and 7, between their halves at once.
    void expect_halves(
        Recording& one, Recording& other, Microbatch first, Microbatch second,
        const std::function<void()>& meanwhile = [] {}) {
        first.arrived[kOutput] = four_of(2);
        one.input_gradients(first);
        EXPECT_EQ(form_of(first.input_gradients.at(kInput)), form_of(four_of(3 * 2)));
        meanwhile();
        second.arrived[kOutput] = four_of(4);
        other.input_gradients(second);
        begin_step();
        one.weight_gradients(first);
        EXPECT_EQ(form_of(weight_.grad()), form_of(four_of(5 * 2)));
        other.weight_gradients(second);
        EXPECT_EQ(form_of(weight_.grad()), form_of(four_of(5 * 2 + 7 * 4)));
    }

    void begin_step() {
        weight_.mutable_grad().reset();
        sums_->begin_step();
    }

    at::Tensor weight_;
    SharedRecorder shared_{test_device()};
    std::unique_ptr<GradientSums> sums_;
    SegmentOps ops_;
};

TEST_F(RecordingOnCards, OneKeepsAMicrobatchFromForwardToBackward) {
    const auto one = recording(form()), other = recording(form());
    EXPECT_GT(one->bytes(), 0);
    Microbatch first = begun(*one, 5), second = begun(*other, 7);
    expect_backward(*other, std::move(second), 7, 2);
    expect_backward(*one, std::move(first), 5, 4);
}

TEST_F(RecordingOnCards, OneKeepsItFromTheFirstHalfOfABackwardToTheSecond) {
    const auto one = recording(form(false, true)), other = recording(form(false, true));
    Microbatch first = begun(*one, 5), second = begun(*other, 7);
    expect_halves(*one, *other, std::move(first), std::move(second));
}

TEST_F(RecordingOnCards, OneServesAllRecomputedMicrobatchesInSharedMemory) {
    const auto one = recording(form(true)), other = recording(form(true));
    EXPECT_GT(shared_.work_bytes(), 0);
    EXPECT_EQ(place_of(one), place_of(other));
    EXPECT_NE(place_of(recording(form())), place_of(one));
    Microbatch first = begun(*one, 5), second = begun(*one, 7), third = begun(*other, 9);
    EXPECT_EQ(form_of(first.tensors.at(kOutput)), form_of(four_of(3 * 5))) << "what it gave is nobody's place";
    expect_backward(*one, std::move(second), 7, 2);
    expect_backward(*other, std::move(third), 9, 1);
    expect_backward(*one, std::move(first), 5, 4);
}

TEST_F(RecordingOnCards, OneServesAllThatAreEvaluatedAndWhatItGaveIsNobodysPlace) {
    ops_.forward = [this](Microbatch& now, bool) {
        now.outputs.push_back(now.inputs.tensors.at(kInput) * weight_.detach());
        now.loss = now.outputs[0].sum();
        now.inputs = {};
    };
    MicrobatchForm evaluated = form();
    evaluated.arrived.clear();
    evaluated.is_evaluated = true;
    const auto one = recording(evaluated), other = recording(evaluated);
    EXPECT_GT(shared_.work_bytes(), 0);
    EXPECT_EQ(one->bytes(), 0);
    EXPECT_EQ(place_of(one), place_of(other));
    std::vector<Microbatch> all(3);
    for (size_t i = 0; i < all.size(); ++i) {
        all[i].inputs = given(static_cast<double>(i));
        (i == 1 ? other : one)->forward(all[i]);
        EXPECT_TRUE(all[i].inputs.tensors.empty());
    }
    for (size_t i = 0; i < all.size(); ++i) {
        ASSERT_EQ(all[i].outputs.size(), 1U);
        EXPECT_EQ(form_of(all[i].outputs[0]), form_of(four_of(3.0 * static_cast<double>(i))));
        EXPECT_EQ(all[i].loss.item<float>(), 12.0F * static_cast<float>(i));
    }
}

TEST_F(RecordingOnCards, OneKeepsARecomputedMicrobatchBetweenTheHalvesAlone) {
    const auto one = recording(form(true, true)), other = recording(form(true, true));
    Microbatch first = begun(*one, 5), second = begun(*one, 7);
    expect_halves(*one, *other, std::move(first), std::move(second), [&] { begun(*one, 11); });
}

TEST_F(RecordingOnCards, OfTheHostOrSparseNothingIsRecorded) {
    for (const at::Tensor& other : {at::ones({4}), at::ones({2, 2}).to_sparse()}) {
        PassInputs inputs;
        inputs.tensors[kInput] = other;
        MicrobatchForm form;
        form.note_inputs(inputs);
        EXPECT_THROW(recording(form), NotRecordable);
    }
    ops_.forward = [](Microbatch& now, bool) {
        const at::Tensor& x = now.inputs.tensors.at(kInput);
        now.outputs.push_back(at::_sparse_coo_tensor_unsafe(at::zeros({1, 4}, x.options().dtype(at::kLong)), x, {4}));
    };
    EXPECT_THROW(recording(form()), NotRecordable) << "nor of an output";
}

}  // namespace
}  // namespace vpp::test
