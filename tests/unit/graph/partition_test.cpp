// The partition against brute force: every choice of cuts on small random cases.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "base/random.hpp"
#include "graph/split.hpp"

namespace vpp {
namespace {

struct Solution {
    double maximum = std::numeric_limits<double>::infinity();
    int64_t bytes = std::numeric_limits<int64_t>::max();
    std::vector<int> cuts;
    auto operator<=>(const Solution&) const = default;
};

double part_cost(const PartitionProblem& problem, int begin, int end) {
    double sum = 0;
    for (int i = begin; i < end; ++i) sum += problem.costs[static_cast<size_t>(i)];
    return sum;
}

Solution judge(const PartitionProblem& problem, const std::vector<int>& cuts) {
    Solution solution{0, 0, cuts};
    int begin = 0;
    for (int cut : cuts) {
        solution.maximum = std::max(solution.maximum, part_cost(problem, begin, cut));
        const auto at = std::find(problem.positions.begin(), problem.positions.end(), cut) - problem.positions.begin();
        solution.bytes += problem.cut_bytes.at(static_cast<size_t>(at));
        begin = cut;
    }
    solution.maximum = std::max(solution.maximum, part_cost(problem, begin, static_cast<int>(problem.costs.size())));
    return solution;
}

/// The best of all choices: least maximum, then fewest bytes, then earliest cuts.
Solution brute_force(const PartitionProblem& problem, int num_parts) {
    Solution best;
    std::vector<int> chosen;
    const std::function<void(size_t)> choose = [&](size_t from) {
        if (static_cast<int>(chosen.size()) == num_parts - 1) {
            best = std::min(best, judge(problem, chosen));
            return;
        }
        for (size_t i = from; i < problem.positions.size(); ++i) {
            chosen.push_back(problem.positions[i]);
            choose(i + 1);
            chosen.pop_back();
        }
    };
    choose(0);
    return best;
}

/// Whole-numbered costs, so that sums are exact; many ties on purpose.
PartitionProblem random_problem(uint64_t seed) {
    uint64_t count = 0;
    const auto draw = [&](uint64_t bound) { return combine_key(seed, count++) % bound; };
    PartitionProblem problem;
    const uint64_t num_ops = 1 + draw(10);
    for (uint64_t i = 0; i < num_ops; ++i) problem.costs.push_back(static_cast<double>(draw(4)));
    for (uint64_t cut = 1; cut < num_ops; ++cut) {
        if (draw(4) == 0) continue;
        problem.positions.push_back(static_cast<int>(cut));
        problem.cut_bytes.push_back(static_cast<int64_t>(draw(3)));
    }
    return problem;
}

TEST(Partition, IsTheBestOfAllChoices) {
    int solved = 0, impossible = 0;
    for (uint64_t seed = 0; seed < 3000; ++seed) {
        const PartitionProblem problem = random_problem(seed);
        for (int parts = 1; parts <= 5; ++parts) {
            const std::vector<int> cuts = min_max_partition(problem, parts);
            if (static_cast<int>(problem.positions.size()) < parts - 1) {
                EXPECT_TRUE(cuts.empty());
                ++impossible;
                continue;
            }
            ASSERT_EQ(cuts, brute_force(problem, parts).cuts) << "seed " << seed << ", " << parts << " parts";
            ++solved;
        }
    }
    EXPECT_GT(solved, 5000);
    EXPECT_GT(impossible, 500);
}

TEST(Partition, BytesAndPlaceDecideAmongEqualMaxima) {
    PartitionProblem problem{{1, 0, 0, 1}, {1, 2, 3}, {5, 5, 5}};
    EXPECT_EQ(min_max_partition(problem, 2), std::vector<int>{1});
    problem.cut_bytes = {5, 5, 4};
    EXPECT_EQ(min_max_partition(problem, 2), std::vector<int>{3});
}

TEST(Partition, AGreedyThresholdWouldMissIt) {
    // Filling each part up to the mean of 17/3 gives a maximum of 9; the best is 8.
    const PartitionProblem problem{{4, 4, 1, 8}, {1, 2, 3}, {0, 0, 0}};
    EXPECT_EQ(judge(problem, min_max_partition(problem, 3)).maximum, 8);
}

TEST(Partition, SumsThatAreNotExactStillGiveACut) {
    PartitionProblem problem;
    for (int i = 0; i < 1000; ++i) {
        problem.costs.push_back(0.1 * (i % 7) + 1e-9);
        if (i > 0) problem.positions.push_back(i);
    }
    problem.cut_bytes.assign(problem.positions.size(), 1);
    for (int parts : {2, 3, 7, 64, 1000}) {
        EXPECT_EQ(min_max_partition(problem, parts).size(), static_cast<size_t>(parts - 1));
    }
}

}  // namespace
}  // namespace vpp
