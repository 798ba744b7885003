// On a card; there is nothing to record without one.
#include "device/card_graph.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>

#include "device/device.hpp"
#include "device/memory_meter.hpp"
#include "support/far_device.hpp"

namespace vpp {
namespace {

class CardGraphs : public testing::Test {
  protected:
    void SetUp() override {
        if (!test::test_device().is_cuda()) GTEST_SKIP() << "a card is needed";
        start_device(test::test_device());
        input_ = numbers();
    }

    static at::Tensor numbers() { return at::arange(6, at::TensorOptions(at::kFloat).device(test::test_device())); }

    at::Tensor input_;
};

TEST_F(CardGraphs, ReplayDoesTheOpsOverTheMemoryOfWhenTheyWereRecorded) {
    const auto recorder = make_card_recorder(test::test_device());
    at::Tensor middle, output;
    const auto first = recorder->record([&] { middle = input_ * 2; });
    const auto second = recorder->record([&] { output = middle + 1; });
    for (int factor : {1, 3}) {
        input_.copy_(numbers() * factor);
        first->replay();
        second->replay();
        EXPECT_TRUE(at::equal(output.cpu(), (numbers() * (2 * factor) + 1).cpu()));
    }
    input_.copy_(numbers() * 5);
    EXPECT_TRUE(at::equal(output.cpu(), (numbers() * 6 + 1).cpu())) << "nothing is done without a replay";
}

TEST_F(CardGraphs, OpsThatWaitForTheCardAreRefusedAndTheCardGoesOn) {
    const auto recorder = make_card_recorder(test::test_device());
    EXPECT_THROW(recorder->record([&] { (input_ * 2).sum().item(); }), c10::Error);
    EXPECT_TRUE(at::equal((input_ + 1).cpu(), numbers().cpu() + 1));
    at::Tensor output;
    const auto graph = recorder->record([&] { output = input_ * 4; });
    graph->replay();
    EXPECT_TRUE(at::equal(output.cpu(), numbers().cpu() * 4));
}

TEST_F(CardGraphs, AQuestionHowFarTheCardIsSpoilsTheRecording) {
    const auto recorder = make_card_recorder(test::test_device());
    c10::Event event(c10::kCUDA);
    event.record(c10::impl::VirtualGuardImpl(c10::kCUDA).getStream(test::test_device()));
    EXPECT_THROW(recorder->record([&] {
        try {
            event.query();
        } catch (const c10::Error&) {
        }
    }),
                 c10::Error);
    EXPECT_NO_THROW(event.query());
}

/// Pinned memory of six numbers, all of that value.
at::Tensor pinned(float value) {
    return at::empty({6}, at::TensorOptions(at::kFloat).pinned_memory(true)).fill_(value);
}

TEST_F(CardGraphs, PinnedMemoryOfARecordingIsNobodyElsesWhileItIsReplayed) {
    for (int i = 0; i < 8; ++i) static_cast<void>(pinned(0));  // what ops have let go of is there
    const auto recorder = make_card_recorder(test::test_device());
    at::Tensor output = at::empty_like(input_);
    const auto graph = recorder->record([&] { output.copy_(pinned(7), /*non_blocking=*/true); });
    std::vector<at::Tensor> others;
    for (int i = 0; i < 8; ++i) others.push_back(pinned(9));
    graph->replay();
    EXPECT_TRUE(at::equal(output.cpu(), at::empty({6}).fill_(7)));
}

TEST_F(CardGraphs, MemoryIsGivenBackWithTheLastGraph) {
    const MemoryMeter meter(test::test_device());
    const int64_t before = meter.now();
    {
        const auto recorder = make_card_recorder(test::test_device());
        at::Tensor output;
        const auto graph = recorder->record([&] { output = input_.repeat({1 << 20}); });
        EXPECT_GE(meter.now(), before + (int64_t{24} << 20));
    }
    EXPECT_EQ(meter.now(), before);
}

}  // namespace
}  // namespace vpp
