// On a card: random ops that are recorded, against the same ops with the seeds that a microbatch gives them.
#include "stage/recorded_randomness.hpp"

#include <ATen/Context.h>
#include <ATen/ops/rand.h>

#include "base/random.hpp"
#include "device/card_graph.hpp"
#include "device/device.hpp"
#include "stage/not_recordable.hpp"
#include "support/far_device.hpp"
#include "unit/stage/support.hpp"

namespace vpp::test {
namespace {

class RecordedRandomnessOnCards : public testing::Test {
  protected:
    void SetUp() override {
        if (!test_device().is_cuda()) GTEST_SKIP() << "a card is needed";
        start_device(test_device());
    }
};

std::string drawn_with(uint64_t seed) {
    at::Generator generator = at::globalContext().defaultGenerator(test_device());
    generator.set_current_seed(seed);
    return form_of(at::rand({5}, test_device()));
}

TEST_F(RecordedRandomnessOnCards, EveryReplayDrawsByItsMicrobatch) {
    RecordedRandomness randomness(test_device());
    const auto recorder = make_card_recorder(test_device());
    std::vector<at::Tensor> drawn;
    std::vector<std::unique_ptr<CardGraph>> graphs;
    for (const int64_t site : {3, 8}) {  // two recordings of one microbatch
        randomness.record([&] {
            graphs.push_back(recorder->record([&] {
                for (const int64_t execution : {0, 1}) {
                    randomness.on_random_op(site, execution);
                    drawn.push_back(at::rand({5}, test_device()));
                }
            }));
        });
    }
    for (const uint64_t key : {5, 6}) {
        randomness.set_key(key);
        for (const auto& graph : graphs) graph->replay();
        for (size_t i = 0; i < drawn.size(); ++i) {
            EXPECT_EQ(form_of(drawn[i]), drawn_with(site_seed(key, i < 2 ? 3 : 8, static_cast<int64_t>(i % 2)))) << i;
        }
    }
    EXPECT_NE(form_of(drawn[0]), form_of(drawn[1]));
}

TEST_F(RecordedRandomnessOnCards, WhatTheHostDrawsWouldNotBeDrawnAgain) {
    RecordedRandomness randomness(test_device());
    EXPECT_THROW(randomness.record([] { at::rand({1}); }), NotRecordable);
    EXPECT_NO_THROW(randomness.record([] {}));
}

}  // namespace
}  // namespace vpp::test
