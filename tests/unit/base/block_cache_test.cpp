#include "base/block_cache.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "base/random.hpp"

namespace vpp {
namespace {

constexpr size_t kBlockMiB = size_t{1} << 20;

/// What a step does: blocks of some sizes are taken, written and given back.
std::vector<void*> run_step(BlockCache& cache) {
    std::vector<void*> blocks;
    for (size_t num_bytes : {kBlockMiB, 8 * kBlockMiB, 64 * kBlockMiB}) {
        blocks.push_back(cache.take(num_bytes));
        std::memset(blocks.back(), 1, num_bytes);
    }
    for (void* block : blocks) cache.give(block);
    return blocks;
}

TEST(BlockCache, ASecondStepGetsTheBlocksOfTheFirst) {
    BlockCache cache, keeps_nothing(SIZE_MAX / 2);
    const std::vector<void*> blocks = run_step(cache);
    EXPECT_GE(cache.kept_bytes(), static_cast<int64_t>(73 * kBlockMiB)) << "so the system clears no new pages";
    EXPECT_EQ(run_step(cache), blocks);
    run_step(keeps_nothing);
    EXPECT_EQ(keeps_nothing.kept_bytes(), 0);
}

TEST(BlockCache, GivesBlocksOfTheSizeBackAndNoOthers) {
    BlockCache cache;
    void* first = cache.take(kBlockMiB);
    cache.give(first);
    EXPECT_GT(cache.kept_bytes(), 0);
    void* larger = cache.take(2 * kBlockMiB);
    EXPECT_GE(BlockCache::size_of(larger), 2 * kBlockMiB);
    EXPECT_EQ(cache.kept_bytes(), 0) << "the other one had to go, or both would have come to more than was ever taken";
    cache.give(larger);
    void* much_smaller = cache.take(kBlockMiB);
    EXPECT_LT(BlockCache::size_of(much_smaller), 2 * kBlockMiB) << "half of a kept block would be wasted";
    cache.give(much_smaller);
    EXPECT_EQ(cache.take(kBlockMiB - 100), much_smaller);
    cache.give(much_smaller);
}

TEST(BlockCache, BlocksAreAlignedAndAsLongAsAsked) {
    BlockCache cache;
    std::vector<void*> blocks;
    for (size_t num_bytes = 1; num_bytes < 4 * kBlockMiB; num_bytes = num_bytes * 3 / 2 + 1) {
        blocks.push_back(cache.take(num_bytes));
        EXPECT_EQ(reinterpret_cast<uintptr_t>(blocks.back()) % 64, 0u);
        EXPECT_GE(BlockCache::size_of(blocks.back()), num_bytes);
        std::memset(blocks.back(), 7, num_bytes);
    }
    for (void* block : blocks) cache.give(block);
    EXPECT_EQ(cache.take(SIZE_MAX / 2), nullptr);
    cache.give(nullptr);
}

// Whatever is taken and given in whatever order: at no time more than the most that was taken at once.
TEST(BlockCache, KeepingCostsNothingAtThePeak) {
    BlockCache cache;
    uint64_t key = 3;
    const auto draw = [&](uint64_t bound) { return (key = mix64(key)) % bound; };
    std::vector<void*> blocks;
    int64_t most_taken = 0, num_kept = 0;
    for (int round = 0; round < 4000; ++round) {
        if (blocks.size() > 12 || (!blocks.empty() && draw(2) == 0)) {
            const size_t index = draw(blocks.size());
            cache.give(blocks[index]);
            blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(index));
        } else {
            const size_t sizes[] = {60000, 65400, 65536, 70000, 200000, 201000, kBlockMiB};
            blocks.push_back(cache.take(sizes[draw(std::size(sizes))]));
        }
        most_taken = std::max(most_taken, cache.taken_bytes());
        num_kept += cache.kept_bytes() > 0 ? 1 : 0;
        ASSERT_LE(cache.taken_bytes() + cache.kept_bytes(), most_taken);
        ASSERT_GE(cache.taken_bytes(), 0);
        ASSERT_GE(cache.kept_bytes(), 0);
    }
    EXPECT_GT(num_kept, 1000);
    for (void* block : blocks) cache.give(block);
    EXPECT_EQ(cache.taken_bytes(), 0);
}

TEST(BlockCache, AllThreadsMayUseIt) {
    BlockCache cache;
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < 4; ++i) {
            threads.emplace_back([&cache, i] {
                for (int round = 0; round < 500; ++round) {
                    const size_t num_bytes = (size_t{1} << 16) + static_cast<size_t>(round % 7) * 4096;
                    auto* block = static_cast<unsigned char*>(cache.take(num_bytes));
                    std::memset(block, i, num_bytes);
                    ASSERT_EQ(block[num_bytes - 1], i);
                    cache.give(block);
                }
            });
        }
    }
    EXPECT_EQ(cache.taken_bytes(), 0);
}

}  // namespace
}  // namespace vpp
