// Every sample is run by exactly one microbatch that counts, in the order of the data.
#include "engine/evaluation_samples.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace vpp::test {
namespace {

std::vector<int64_t> numbers_of(const std::vector<Draw>& draws) {
    std::vector<int64_t> numbers;
    for (const Draw& draw : draws) numbers.push_back(draw.sample);
    return numbers;
}

using Numbers = std::vector<int64_t>;

TEST(EvaluationSamples, GroupsAreSharedByReplicasAndMicrobatches) {
    const EvaluationSamples samples{100, 2, 3, 2};
    EXPECT_EQ(numbers_of(samples.draws(0, 0, 0)), (Numbers{0, 1}));
    EXPECT_EQ(numbers_of(samples.draws(0, 0, 2)), (Numbers{4, 5}));
    EXPECT_EQ(numbers_of(samples.draws(0, 1, 0)), (Numbers{6, 7}));
    EXPECT_EQ(numbers_of(samples.draws(1, 0, 0)), (Numbers{12, 13}));
}

TEST(EvaluationSamples, BehindTheEndTheLastMicrobatchRunsOnceMoreAndCountsNothing) {
    const EvaluationSamples samples{17, 2, 3, 2};
    EXPECT_EQ(samples.size(1, 0, 2), 1);
    EXPECT_EQ(numbers_of(samples.draws(1, 0, 2)), (Numbers{16}));
    EXPECT_EQ(samples.num_groups(0), 2);
    EXPECT_EQ(samples.num_groups(1), 1) << "it has none of the second group";
    EXPECT_THROW(samples.draws(1, 1, 0), Error);
    EXPECT_EQ(samples.num_groups(2), 0) << "it is not at work";
    const EvaluationSamples one{1, 4, 3, 2};
    EXPECT_EQ(one.size(0, 0, 1), 0);
    EXPECT_EQ(numbers_of(one.draws(0, 0, 2)), (Numbers{0}));
    EXPECT_EQ(one.num_groups(1), 0);
}

TEST(EvaluationSamples, EachIsRunOnce) {
    for (int64_t num_samples : {1, 2, 5, 12, 13, 24, 25, 36}) {
        for (int num_replicas : {1, 2, 3}) {
            const EvaluationSamples samples{num_samples, 3, 2, num_replicas};
            Numbers run;
            for (int64_t group = 0; group < samples.num_groups(0); ++group) {
                for (int replica = 0; replica < num_replicas; ++replica) {
                    EXPECT_EQ(group<samples.num_groups(replica), samples.size(group, replica, 0)> 0);
                    for (int microbatch = 0; microbatch < 2; ++microbatch) {
                        if (samples.size(group, replica, microbatch) == 0) continue;
                        const Numbers now = numbers_of(samples.draws(group, replica, microbatch));
                        EXPECT_EQ(static_cast<int64_t>(now.size()), samples.size(group, replica, microbatch));
                        run.insert(run.end(), now.begin(), now.end());
                    }
                }
            }
            Numbers all;
            for (int64_t sample = 0; sample < num_samples; ++sample) all.push_back(sample);
            EXPECT_EQ(run, all) << num_samples << " samples, " << num_replicas << " replicas";
        }
    }
}

}  // namespace
}  // namespace vpp::test
