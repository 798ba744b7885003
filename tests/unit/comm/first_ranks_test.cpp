#include "comm/first_ranks.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "comm/collective.hpp"
#include "comm/in_process.hpp"

namespace vpp {
namespace {

InProcessOptions plain_ranks(int num_ranks) {
    InProcessOptions options;
    options.num_ranks = num_ranks;
    return options;
}

TEST(FirstRanks, AreAJobOfTheirOwn) {
    InProcessWorld(plain_ranks(4)).run([](Transport& job) {
        for (int size = 1; size <= 4; ++size) {
            if (job.rank() < size) {
                FirstRanks first(job, size);
                EXPECT_EQ(first.size(), size);
                EXPECT_EQ(first.rank(), job.rank());
                const std::vector<Bytes> all = all_gather(first, to_bytes(std::to_string(first.rank())));
                ASSERT_EQ(all.size(), static_cast<size_t>(size));
                EXPECT_EQ(to_string(all.back()), std::to_string(size - 1));
            }
            barrier(job);
        }
    });
}

TEST(FirstRanks, KnowNobodyElse) {
    InProcessWorld(plain_ranks(3)).run([](Transport& job) {
        if (job.rank() == 2) {
            EXPECT_THROW(FirstRanks(job, 2), Error);
        } else {
            FirstRanks first(job, 2);
            EXPECT_THROW(first.post_receive(2, {}, 8), Error);
            EXPECT_THROW(first.receive(2, {}), Error);
            EXPECT_THROW(first.send(2, {}, Buffer(8)), Error);
            EXPECT_THROW(FirstRanks(job, 4), Error);
        }
        barrier(job);
    });
}

}  // namespace
}  // namespace vpp
