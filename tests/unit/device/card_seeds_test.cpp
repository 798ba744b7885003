// On a card: random ops that are recorded, against the same ops with the generator's seed.
#include "device/card_seeds.hpp"

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <vector>

#include "device/card_graph.hpp"
#include "device/device.hpp"
#include "device/memory_meter.hpp"
#include "support/far_device.hpp"

namespace vpp {
namespace {

at::Tensor draw() {
    return at::rand({5}, test::test_device());
}

void set_seed(uint64_t seed) {
    at::Generator generator = at::globalContext().defaultGenerator(test::test_device());
    generator.set_current_seed(seed);
}

/// Two numbers of one seed, then one of another.
std::vector<at::Tensor> drawn_with(uint64_t seed, uint64_t other) {
    set_seed(seed);
    std::vector<at::Tensor> drawn{draw(), draw()};
    set_seed(other);
    drawn.push_back(draw());
    return drawn;
}

TEST(CardSeeds, EachReplayDrawsWithTheSeedsThatItIsGiven) {
    if (!test::test_device().is_cuda()) GTEST_SKIP() << "a card is needed";
    start_device(test::test_device());
    const auto recorder = make_card_recorder(test::test_device());
    const auto seeds = make_card_seeds(test::test_device());
    std::vector<at::Tensor> drawn;
    seeds->begin_recording();
    const auto graph = recorder->record([&] {
        seeds->next();
        drawn = {draw(), draw()};
        seeds->next();
        drawn.push_back(draw());
    });
    seeds->end_recording();
    const std::vector<uint64_t> large{uint64_t{1} << 63 | 12345, 7};
    for (const std::vector<uint64_t>& pair : {std::vector<uint64_t>{3, 4}, {5, 3}, large}) {
        seeds->fill(pair);
        graph->replay();
        const std::vector<at::Tensor> own = drawn_with(pair[0], pair[1]);
        for (size_t i = 0; i < own.size(); ++i) EXPECT_TRUE(at::equal(drawn[i].cpu(), own[i].cpu())) << i;
    }
    EXPECT_FALSE(at::equal(drawn[0].cpu(), drawn[1].cpu()));
    EXPECT_FALSE(at::equal(drawn[0].cpu(), drawn_with(3, 4)[0].cpu())) << "the control: another seed";
}

// It may wait for all that the card does, messages too.
TEST(CardSeeds, ReplaysTakeNoMemoryThoughTheHostIsAhead) {
    if (!test::test_device().is_cuda()) GTEST_SKIP() << "a card is needed";
    start_device(test::test_device());
    constexpr size_t kReplays = 40;
    const auto recorder = make_card_recorder(test::test_device());
    const auto seeds = make_card_seeds(test::test_device());
    const at::Tensor all = at::zeros({kReplays, 5}, at::TensorOptions(test::test_device()));
    at::Tensor drawn;
    seeds->begin_recording();
    const auto graph = recorder->record([&] {
        seeds->next();
        drawn = draw();
    });
    seeds->end_recording();
    seeds->fill({99});
    const int64_t taken = MemoryMeter(test::test_device()).taken();
    for (size_t i = 0; i < kReplays; ++i) {
        seeds->fill({i});
        graph->replay();
        all[static_cast<int64_t>(i)].copy_(drawn);
    }
    EXPECT_EQ(MemoryMeter(test::test_device()).taken(), taken);
    for (size_t i = 0; i < kReplays; ++i) {
        set_seed(i);
        EXPECT_TRUE(at::equal(all[static_cast<int64_t>(i)].cpu(), draw().cpu())) << i;
    }
}

TEST(CardSeeds, TheGeneratorIsItselfAgain) {
    if (!test::test_device().is_cuda()) GTEST_SKIP() << "a card is needed";
    start_device(test::test_device());
    const auto seeds = make_card_seeds(test::test_device());
    seeds->begin_recording();
    seeds->end_recording();
    EXPECT_TRUE(at::equal(drawn_with(9, 2)[0].cpu(), drawn_with(9, 1)[0].cpu()));
    EXPECT_FALSE(at::equal(drawn_with(9, 2)[0].cpu(), drawn_with(8, 2)[0].cpu()));
}

}  // namespace
}  // namespace vpp
