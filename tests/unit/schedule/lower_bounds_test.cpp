#include "schedule/lower_bounds.hpp"

#include "unit/schedule/every_order.hpp"

namespace vpp {
namespace {

using testing::least_of_every_order;
using testing::random_costs;

BoundedProblem linear(int P, int M, const ScheduleCosts& costs, int most_held, bool split) {
    return {place_stages(Placement::Loop, {P, 1, M}), P, M, costs, most_held, split};
}

// Against every order there is: never above the best of them, and met often enough to be worth something.
TEST(LowerBounds, NoOrderIsBetter) {
    int num_met = 0, num_problems = 0;
    const auto hold_against_all = [&](int P, int M, int most_held, bool split, uint64_t seed) {
        const ScheduleCosts costs = random_costs(P, seed);
        const testing::Least least = least_of_every_order(P, M, costs, most_held, split);
        const BoundedProblem problem = linear(P, M, costs, most_held, split);
        const Ticks makespan = lower_bound_of(problem, SearchObjective::Makespan);
        const Ticks span = lower_bound_of(problem, SearchObjective::Span);
        EXPECT_LE(makespan, least.makespan) << P << ' ' << M << ' ' << most_held << ' ' << split << ' ' << seed;
        EXPECT_LE(span, least.span) << P << ' ' << M << ' ' << most_held << ' ' << split << ' ' << seed;
        num_met += (makespan == least.makespan ? 1 : 0) + (span == least.span ? 1 : 0);
        num_problems += 2;
    };
    for (uint64_t seed = 0; seed < 12; ++seed) {
        for (int most_held : {1, 2}) {
            hold_against_all(2, 2, most_held, true, seed);
            hold_against_all(3, 2, most_held, true, seed);
            hold_against_all(3, 3, most_held, false, seed);
        }
    }
    for (uint64_t seed = 0; seed < 2; ++seed) hold_against_all(2, 3, 2, true, seed);
    EXPECT_GT(num_met, num_problems * 2 / 3);
}

// Guide: at even costs, linear placement and limit k <= P no bubble is below (P-1)(T_I+2c) + (P-k)T_F.
TEST(LowerBounds, MemoryLimitAtEvenCosts) {
    const Ticks F = 7, I = 5, W = 3, c = 2;
    for (int P : {2, 4, 8}) {
        for (int k = 1; k <= P; ++k) {
            ScheduleCosts costs;
            costs.stages.assign(static_cast<size_t>(P), {F, I + W, I, W});
            costs.transfer = c;
            const int M = 4 * P;
            const Ticks bound = lower_bound_of(linear(P, M, costs, k, true), SearchObjective::Makespan);
            EXPECT_GE(bound, M * (F + I + W) + (P - 1) * (I + 2 * c) + (P - k) * F) << P << ' ' << k;
        }
    }
}

TEST(LowerBounds, EachByHand) {
    ScheduleCosts costs;
    costs.stages = {{1, 20, 8, 4}, {2, 20, 9, 5}, {3, 20, 10, 6}};
    costs.transfer = 100;
    // one microbatch: with a split, without
    EXPECT_EQ(lower_bound_of(linear(3, 1, costs, 1, true), SearchObjective::Makespan), 206 + 200 + 10 + 9 + 12);
    EXPECT_EQ(lower_bound_of(linear(3, 1, costs, 1, false), SearchObjective::Makespan), 206 + 200 + 60);
    // many: rank 2 starts after 203, holds at most 30 W back, then the gradients go down
    const Ticks work = 1000 * (3 + 16);
    const Ticks down = 200 + 9 + 12;
    EXPECT_EQ(lower_bound_of(linear(3, 1000, costs, 30, true), SearchObjective::Span), 203 + work - 180 + down);
    // seven at a time: rank 0 holds each from its F to its W
    const Ticks hold = 206 + 200 + 10 + 9 + 12;
    EXPECT_EQ(lower_bound_of(linear(3, 1000, costs, 7, true), SearchObjective::Span), (1000 * hold + 6) / 7);
    // half of each F beside a backward
    ScheduleCosts beside = costs;
    beside.overlap_percent = 50;
    EXPECT_EQ(lower_bound_of(linear(3, 1000, beside, 1000, true), SearchObjective::Span), 1000 * (3 - 1 + 16));
    // all W may wait: only rank 2's work counts, and what it waits for
    EXPECT_EQ(lower_bound_of(linear(3, 1000, costs, 1000, true), SearchObjective::Makespan), 203 + work);
    EXPECT_EQ(lower_bound_of(linear(3, 1000, costs, 1000, true), SearchObjective::Span), work);
}

}  // namespace
}  // namespace vpp
