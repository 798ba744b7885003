#include "base/random.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "base/error.hpp"

namespace vpp {
namespace {

// The first outputs of SplitMix64 from state 0, as published with its reference code.
TEST(Mix64, IsTheFinaliserOfSplitMix64) {
    EXPECT_EQ(mix64(0), 0xe220a8397b1dcdafULL);
    EXPECT_EQ(mix64(0x9e3779b97f4a7c15ULL), 0x6e789e6aa1b965f4ULL);
}

// These values are part of the numerical contract: a change of any of them changes every mask and every data order.
TEST(Keys, ValuesNeverChange) {
    EXPECT_EQ(microbatch_key(1234, 0, 0, 0), combine_key(combine_key(combine_key(mix64(mix64(1234)), 0), 0), 0));
    EXPECT_EQ(site_seed(5, 2, 3), combine_key(combine_key(5, 2), 3));
}

TEST(Keys, AreTheTestVectorsOfTheirPage) {  // lib/base/RANDOM.md
    EXPECT_EQ(mix64(0), 0xe220a8397b1dcdafULL);
    EXPECT_EQ(mix64(0x9e3779b97f4a7c15ULL), 0x6e789e6aa1b965f4ULL);
    EXPECT_EQ(mix64(0xffffffffffffffffULL), 0xe4d971771b652c20ULL);
    EXPECT_EQ(combine_key(0, 0), 0xa706dd2f4d197e6fULL);
    EXPECT_EQ(combine_key(1, 2), 0xe06dd043328bd285ULL);
    EXPECT_EQ(combine_key(2, 1), 0xbcd9dbb49673066bULL);
    EXPECT_EQ(microbatch_key(0, 0, 0, 0), 0x15caa809cf794190ULL);
    EXPECT_EQ(microbatch_key(1234, 0, 0, 0), 0xd55df16d47bd9a1bULL);
    EXPECT_EQ(microbatch_key(1234, 0, 0, 1), 0xba8fc813e286e5e8ULL);
    EXPECT_EQ(microbatch_key(1234, 1, 0, 0), 0x544a38b4dd6bc475ULL);
    EXPECT_EQ(microbatch_key(1234, 5, 1, 2), 0xe4e601ace6a36075ULL);
    EXPECT_EQ(site_seed(microbatch_key(1234, 0, 0, 0), 0, 0), 0x5f3ed0d5c346cc7cULL);
    EXPECT_EQ(site_seed(microbatch_key(1234, 0, 0, 0), 1, 0), 0x7db93300d4b6831cULL);
    EXPECT_EQ(site_seed(microbatch_key(1234, 0, 0, 0), 0, 1), 0x40600e751e041254ULL);
    EXPECT_EQ(site_seed(microbatch_key(1234, 5, 1, 2), 7, 0), 0xd0816cb77bd23e39ULL);
    EXPECT_EQ(transform_key(0, 0, 0), 0x715777f437fcf197ULL);
    EXPECT_EQ(transform_key(1234, 0, 0), 0x1cda7e3c02130f80ULL);
    EXPECT_EQ(transform_key(1234, 0, 1), 0xc780b09906bafb2eULL);
    EXPECT_EQ(transform_key(1234, 3, 7), 0x84b5845bbffe8113ULL);
}

TEST(Keys, OfNamesAreTheTestVectorsOfTheirPage) {
    EXPECT_EQ(name_key(0, ""), mix64(0));
    EXPECT_EQ(name_key(1234, "a"), 0xee80889dadfd7aafULL);
    EXPECT_EQ(name_key(1234, "blocks.0.weight"), 0x68e1a18fa75d5a1bULL);
    EXPECT_EQ(name_key(1235, "blocks.0.weight"), 0x283b61e79552e5d9ULL);
}

TEST(Keys, EveryPartMatters) {
    std::set<uint64_t> keys;
    for (uint64_t seed : {99, 1234}) {
        for (int64_t step = 0; step < 4; ++step) {
            for (int64_t replica = 0; replica < 4; ++replica) {
                for (int64_t microbatch = 0; microbatch < 4; ++microbatch) {
                    const uint64_t key = microbatch_key(seed, step, replica, microbatch);
                    for (int64_t site = 0; site < 3; ++site) {
                        for (int64_t execution = 0; execution < 3; ++execution) {
                            keys.insert(site_seed(key, site, execution));
                        }
                    }
                }
            }
        }
    }
    EXPECT_EQ(keys.size(), 2U * 4 * 4 * 4 * 3 * 3);
}

TEST(Permutation, IsABijectionForAnySize) {
    for (int64_t size : {1, 2, 3, 4, 5, 7, 8, 9, 63, 64, 65, 1000}) {
        for (uint64_t key : {0ULL, 1ULL, ~0ULL}) {
            const Permutation permutation(size, key);
            std::vector<bool> seen(static_cast<size_t>(size), false);
            for (int64_t index = 0; index < size; ++index) {
                const int64_t to = permutation(index);
                ASSERT_TRUE(to >= 0 && to < size);
                EXPECT_FALSE(seen[static_cast<size_t>(to)]);
                seen[static_cast<size_t>(to)] = true;
            }
        }
    }
}

TEST(Permutation, TheKeyDecidesTheOrder) {
    const Permutation one(1000, 1), same(1000, 1), other(1000, 2);
    int num_equal = 0, num_fixed = 0;
    for (int64_t index = 0; index < 1000; ++index) {
        EXPECT_EQ(one(index), same(index));
        num_equal += one(index) == other(index);
        num_fixed += one(index) == index;
    }
    EXPECT_LT(num_equal, 20);
    EXPECT_LT(num_fixed, 20);
}

TEST(Permutation, TheOrderNeverChanges) {
    const Permutation permutation(10, 42);
    std::vector<int64_t> order;
    for (int64_t index = 0; index < 10; ++index) order.push_back(permutation(index));
    EXPECT_EQ(order, (std::vector<int64_t>{9, 5, 8, 0, 2, 6, 3, 1, 7, 4}));
}

TEST(Permutation, LargeSizesWork) {
    const Permutation permutation(INT64_MAX, 9);
    EXPECT_NE(permutation(0), permutation(1));
    EXPECT_GE(permutation(INT64_MAX - 1), 0);
}

TEST(Permutation, NothingOutside) {
    EXPECT_THROW(Permutation(0, 1), Error);
    EXPECT_THROW(Permutation(-3, 1), Error);
    const Permutation permutation(3, 1);
    EXPECT_THROW(permutation(3), Error);
    EXPECT_THROW(permutation(-1), Error);
}

}  // namespace
}  // namespace vpp
