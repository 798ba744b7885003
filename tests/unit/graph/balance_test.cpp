// The cut of least bottleneck against every choice of cuts, on small random problems.
#include "graph/balance.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/random.hpp"

namespace vpp {
namespace {

using ::testing::ElementsAre;

struct Choice {
    double bottleneck = 0;
    double squares = 0;
    std::vector<int> cuts;
    auto operator<=>(const Choice&) const = default;
};

std::optional<Choice> judge_choice(const BalanceProblem& problem, const std::vector<int>& cuts) {
    const auto over = [&](int border) {
        const auto found = std::find(problem.positions.begin(), problem.positions.end(), border);
        if (found == problem.positions.end()) return 0.0;
        return problem.cut_times[static_cast<size_t>(found - problem.positions.begin())];
    };
    Choice choice{0, 0, cuts};
    int begin = 0;
    for (size_t stage = 0; stage <= cuts.size(); ++stage) {
        const int end = stage < cuts.size() ? cuts[stage] : static_cast<int>(problem.times.size());
        if (problem.fits && !problem.fits(static_cast<int>(stage), begin, end)) return std::nullopt;
        double time = over(begin) + over(end);
        for (int op = begin; op < end; ++op) time += problem.times[static_cast<size_t>(op)];
        choice.bottleneck = std::max(choice.bottleneck, time);
        choice.squares += time * time;
        begin = end;
    }
    return choice;
}

/// Every choice that fits, best first.
std::vector<Choice> all_choices(const BalanceProblem& problem, int num_stages) {
    std::vector<Choice> found;
    const size_t count = problem.positions.size();
    for (uint32_t mask = 0; mask < (1U << count); ++mask) {
        std::vector<int> cuts;
        for (size_t i = 0; i < count; ++i) {
            if (mask >> i & 1U) cuts.push_back(problem.positions[i]);
        }
        if (static_cast<int>(cuts.size()) != num_stages - 1) continue;
        if (const auto choice = judge_choice(problem, cuts)) found.push_back(*choice);
    }
    std::sort(found.begin(), found.end());
    return found;
}

/// Whole-numbered times, so that sums are exact; many ties on purpose.
BalanceProblem random_balance(uint64_t seed) {
    uint64_t counter = 0;
    const auto draw = [&](uint64_t below) { return combine_key(seed, counter++) % below; };
    BalanceProblem problem;
    const auto num_ops = static_cast<int>(2 + draw(10));
    for (int op = 0; op < num_ops; ++op) problem.times.push_back(static_cast<double>(draw(9)));
    for (int cut = 1; cut < num_ops; ++cut) {
        if (draw(4) == 0) continue;
        problem.positions.push_back(cut);
        problem.cut_times.push_back(static_cast<double>(draw(3)));
    }
    if (draw(2) == 0) {
        const auto most = static_cast<int>(2 + draw(4));
        problem.fits = [most](int stage, int begin, int end) { return end - begin <= most + stage; };
    }
    return problem;
}

TEST(Balance, IsTheBestOfAllChoicesAndKnowsTheNextBest) {
    int solved = 0, impossible = 0, without_another = 0;
    for (uint64_t seed = 0; seed < 2000; ++seed) {
        const BalanceProblem problem = random_balance(seed);
        const int num_stages = 2 + static_cast<int>(seed % 4);
        const std::vector<Choice> choices = all_choices(problem, num_stages);
        const auto balance = balance_stages(problem, num_stages);
        ASSERT_EQ(balance.has_value(), !choices.empty()) << seed;
        if (!balance) {
            ++impossible;
            continue;
        }
        ++solved;
        ASSERT_EQ(balance->cuts, choices[0].cuts) << seed;
        ASSERT_EQ(balance->bottleneck, choices[0].bottleneck) << seed;
        ASSERT_LE(balance->lower_bound, balance->bottleneck) << seed;
        ASSERT_EQ(balance->next_best.has_value(), choices.size() > 1) << seed;
        without_another += choices.size() == 1;
        // The others, best first by bottleneck alone.
        if (choices.size() > 1) {
            ASSERT_EQ(*balance->next_best, choices[1].bottleneck) << seed;
        }
    }
    EXPECT_GT(solved, 500);
    EXPECT_GT(impossible, 100);
    EXPECT_GT(without_another, 20);
}

TEST(Balance, AHeavyOpMovesTheCut) {
    const BalanceProblem even{{1, 1, 1, 1, 1, 1}, {1, 2, 3, 4, 5}, {0, 0, 0, 0, 0}, {}};
    BalanceProblem heavy = even;
    heavy.times.back() = 5;
    EXPECT_THAT(balance_stages(even, 2)->cuts, ElementsAre(3));
    const Balance balance = *balance_stages(heavy, 2);
    EXPECT_THAT(balance.cuts, ElementsAre(5));
    EXPECT_EQ(balance.bottleneck, 5);
    EXPECT_EQ(balance.lower_bound, 5);
    EXPECT_EQ(*balance.next_best, 6);
}

TEST(Balance, ADearMessageMovesTheCut) {
    BalanceProblem problem{{1, 1, 1, 1}, {1, 2, 3}, {0, 3, 0}, {}};
    EXPECT_THAT(balance_stages(problem, 2)->cuts, ElementsAre(1)) << "3 + 0 beside 2 + 3, and the earlier of equals";
    problem.cut_times = {0, 0.5, 0};
    EXPECT_THAT(balance_stages(problem, 2)->cuts, ElementsAre(2));
}

TEST(Balance, StagesBesideTheBottleneckAreEven) {
    const BalanceProblem problem{{9, 1, 1, 1, 1}, {1, 2, 3, 4}, {0, 0, 0, 0}, {}};
    EXPECT_THAT(balance_stages(problem, 3)->cuts, ElementsAre(1, 3));
}

}  // namespace
}  // namespace vpp
