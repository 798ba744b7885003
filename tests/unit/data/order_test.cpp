#include "data/order.hpp"

#include <algorithm>
#include <numeric>

#include "unit/data/support.hpp"

namespace vpp {
namespace {

std::vector<int64_t> step_samples(const SampleOrder& order, int64_t step, int64_t global_batch_size) {
    std::vector<int64_t> samples;
    for (const Draw& draw : order.draws(step * global_batch_size, global_batch_size)) samples.push_back(draw.sample);
    return samples;
}

std::vector<int64_t> epoch_of(const SampleOrder& order, int64_t num_samples, int64_t epoch) {
    return step_samples(order, epoch, num_samples);
}

// Fixed for ever: checkpoints and scripts beside vpp count on this order. Computed once from the definitions of mix64
// and of the Feistel network by another program.
TEST(SampleOrder, Golden) {
    const SampleOrder small(10, 1234, true);
    EXPECT_EQ(step_samples(small, 0, 20),
              (std::vector<int64_t>{2, 6, 4, 7, 1, 3, 0, 8, 9, 5, 5, 3, 8, 0, 7, 6, 2, 4, 9, 1}));
    const SampleOrder large(1'000'003, 7, true);
    EXPECT_EQ(large.sample(0), 560500);
    EXPECT_EQ(large.sample(1), 551658);
    EXPECT_EQ(large.sample(2), 569396);
    EXPECT_EQ(large.sample(1'000'002), 615881);
    EXPECT_EQ(large.sample(1'000'003), 166201);
}

TEST(SampleOrder, EveryEpochIsAPermutationOfItsOwn) {
    for (int64_t size : {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 63, 64, 65, 100, 255, 256, 257, 1000, 4097}) {
        const SampleOrder order(size, 99, true);
        std::vector<int64_t> expected(static_cast<size_t>(size));
        std::iota(expected.begin(), expected.end(), 0);
        for (int64_t epoch : {0, 1, 5}) {
            std::vector<int64_t> samples = epoch_of(order, size, epoch);
            std::sort(samples.begin(), samples.end());
            EXPECT_EQ(samples, expected) << "size " << size << ", epoch " << epoch;
        }
        if (size > 20) {
            EXPECT_NE(epoch_of(order, size, 0), epoch_of(order, size, 1)) << "size " << size;
        }
    }
}

TEST(SampleOrder, EpochsRunOnWithoutAGap) {
    const SampleOrder order(10, 3, true);
    std::vector<int64_t> by_steps;
    for (int64_t step = 0; step < 10; ++step) {
        for (int64_t sample : step_samples(order, step, 4)) by_steps.push_back(sample);
    }
    std::vector<int64_t> by_epochs;
    for (int64_t epoch = 0; epoch < 4; ++epoch) {
        for (int64_t sample : epoch_of(order, 10, epoch)) by_epochs.push_back(sample);
    }
    EXPECT_EQ(by_steps, by_epochs);
}

TEST(SampleOrder, TheBatchSizeDoesNotChangeTheSequence) {
    const SampleOrder order(23, 5, true);
    const std::vector<int64_t> whole = step_samples(order, 0, 60);
    for (int64_t batch : {1, 2, 5, 30}) {
        std::vector<int64_t> parts;
        for (int64_t step = 0; step < 60 / batch; ++step) {
            for (int64_t sample : step_samples(order, step, batch)) parts.push_back(sample);
        }
        EXPECT_EQ(parts, whole) << "batch " << batch;
    }
}

TEST(SampleOrder, TheSeedChangesIt) {
    EXPECT_NE(step_samples({100, 1, true}, 0, 100), step_samples({100, 2, true}, 0, 100));
}

TEST(SampleOrder, WithoutShuffleItCounts) {
    EXPECT_EQ(step_samples({3, 1, false}, 1, 4), (std::vector<int64_t>{1, 2, 0, 1}));
    EXPECT_EQ(SampleOrder(3, 1, false).draws(4, 4), (std::vector<Draw>{{1, 1}, {2, 1}, {0, 2}, {1, 2}}));
}

TEST(SampleOrder, RefusesWhatCannotBe) {
    test::error_of(ErrorKind::Bug, [] { SampleOrder(0, 1, true); });
    test::error_of(ErrorKind::Bug, [] { SampleOrder(3, 1, true).sample(-1); });
    test::error_of(ErrorKind::Bug, [] { SampleOrder(3, 1, true).draws(0, -1); });
    test::error_of(ErrorKind::Bug, [] { SampleOrder(3, 1, true).draws(INT64_MAX - 2, 3); });
}

}  // namespace
}  // namespace vpp
