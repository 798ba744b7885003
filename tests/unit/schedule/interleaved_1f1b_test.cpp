#include "schedule/interleaved_1f1b.hpp"

#include "unit/schedule/closed_forms.hpp"

namespace vpp {
namespace {

using testing::prove;
using testing::texts;

Schedule interleaved_of(int P, int v, int M) {
    return make_interleaved_1f1b({.size = {P, v, M}});
}

// The table of Megatron-LM's forward_backward_pipelining_with_interleaving, laid by hand: warm-up 4 and 2 forwards.
TEST(Interleaved1f1b, TwoRanksTwoStagesFourMicrobatches) {
    const Schedule schedule = interleaved_of(2, 2, 4);
    EXPECT_EQ(schedule.name, "INTERLEAVED_1F1B");
    EXPECT_EQ(schedule.rank_of_stage, (std::vector<int>{0, 1, 0, 1}));
    EXPECT_EQ(texts(schedule), (std::vector<std::string>{
                                   "0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3",
                                   "1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3",
                               }));
}

// Groups of 3 and 2: warm-up of 2(P-1-r) + (v-1)N = 5 and 3.
TEST(Interleaved1f1b, LargerGroupsByHand) {
    const Schedule schedule = make_interleaved_1f1b({.size = {2, 2, 5}, .interleave_group = 3});
    EXPECT_EQ(texts(schedule), (std::vector<std::string>{
                                   "0F0 0F1 0F2 2F0 2F1 2F2 2B0 0F3 2B1 0F4 2B2 2F3 0B0 2F4 0B1 0B2 2B3 2B4 0B3 0B4",
                                   "1F0 1F1 1F2 3F0 3B0 3F1 3B1 3F2 3B2 1F3 1B0 1F4 1B1 3F3 1B2 3F4 3B3 3B4 1B3 1B4",
                               }));
}

TEST(Interleaved1f1b, OneGroupIsBreadthFirstInItsForwards) {
    const Schedule schedule = make_interleaved_1f1b({.size = {2, 2, 4}, .interleave_group = 4});
    EXPECT_EQ(texts(schedule)[0], "0F0 0F1 0F2 0F3 2F0 2F1 2F2 2B0 2F3 2B1 2B2 2B3 0B0 0B1 0B2 0B3");
}

/// N for which the closed forms hold: P, PyTorch's and others of which M mod N is 0 or at least P.
std::vector<int> fitting_groups(const ScheduleSize& size) {
    const int P = size.num_ranks, M = size.num_microbatches;
    std::vector<int> candidates{M / (M / P)};
    if (P <= 8) candidates.insert(candidates.end(), {P, P + 1, P + P / 2, M - P, M});
    std::vector<int> groups;
    for (int N : candidates) {
        if (N >= P && N <= M && (M % N == 0 || M % N >= P)) groups.push_back(N);
    }
    return groups;
}

TEST(Interleaved1f1b, BubbleAndPeakAreTheClosedForms) {
    for (const ScheduleSize& size : testing::closed_form_sizes(2, 4, [](int P) { return P; })) {
        for (int group : fitting_groups(size)) {
            const auto peak = [&](const ScheduleSize& of, int rank) {
                const int warmup = 2 * (of.num_ranks - 1 - rank) + (of.stages_per_rank - 1) * group;
                return std::min(warmup + 1, of.num_microbatches * of.stages_per_rank);
            };
            SCOPED_TRACE("N " + std::to_string(group));
            testing::expect_closed_forms(make_interleaved_1f1b, {.size = size, .interleave_group = group},
                                         {testing::fused_bubble, testing::fused_bubble, peak});
        }
    }
}

TEST(Interleaved1f1b, EveryGroupSizeEnds) {
    for (int P = 1; P <= 5; ++P) {
        for (int v = 2; v <= 3; ++v) {
            for (int M = 1; M <= 14; ++M) {
                for (int N = P; N <= std::max(P, M); ++N) {
                    const auto proved = prove(make_interleaved_1f1b({.size = {P, v, M}, .interleave_group = N}));
                    EXPECT_EQ(proved.facts.num_computing, int64_t{2} * P * v * M);
                    EXPECT_LE(proved.facts.peak_in_flight[0], std::min(2 * (P - 1) + (v - 1) * N + 1, M * v));
                }
            }
        }
    }
}

// A remainder of M in (0, P) costs bubbles, and a group size that avoids it saves them.
TEST(Interleaved1f1b, RemaindersCostBubbles) {
    const auto makespan = [](int group) {
        return prove(make_interleaved_1f1b({.size = {4, 2, 10}, .interleave_group = group})).simulation.makespan;
    };
    EXPECT_EQ(makespan(5), 3 * 10 * 2 + 3 * 3);
    EXPECT_GT(makespan(4), 3 * 10 * 2 + 3 * 3);
}

// With larger groups there is more to do while a transfer is on its way round the loop.
TEST(Interleaved1f1b, LargerGroupsHideTransfers) {
    const auto growth = [](int group) {
        const Schedule schedule = make_interleaved_1f1b({.size = {4, 2, 16}, .interleave_group = group});
        return testing::growth_by_transfers(schedule, {10, 20, 10, 10}, 2).makespan;
    };
    EXPECT_LT(growth(8), growth(4));
}

TEST(Interleaved1f1b, AnyNumberOfMicrobatchesEnds) {
    for (int P = 1; P <= 8; ++P) {
        for (int v = 2; v <= 4; ++v) {
            const std::vector<ScheduleEdge> edges = chain_edges(P * v);
            for (int M = 1; M <= 40; ++M) {
                const Schedule lowered = lower(interleaved_of(P, v, M), edges);
                const ScheduleFacts facts = check_schedule(lowered, edges);
                EXPECT_EQ(facts.num_computing, int64_t{2} * P * v * M);
                EXPECT_EQ(facts.num_messages, P == 1 ? 0 : int64_t{2} * (P * v - 1) * M);
                for (int rank = 0; rank < P; ++rank) {
                    EXPECT_LE(facts.peak_in_flight[static_cast<size_t>(rank)],
                              std::min(2 * (P - 1 - rank) + (v - 1) * P + 1, M * v));
                }
            }
        }
    }
}

TEST(Interleaved1f1b, FewerMicrobatchesThanRanksCostTheChainAtMost) {
    // With one microbatch nothing overlaps: all F, then all B.
    EXPECT_EQ(prove(interleaved_of(4, 2, 1)).simulation.makespan, 24);
    EXPECT_EQ(prove(interleaved_of(4, 2, 3)).simulation.makespan, 30);
}

TEST(Interleaved1f1b, OneStageOnEachRankIsRefused) {
    EXPECT_EQ(testing::error_text(ErrorKind::Plan, [] { interleaved_of(2, 1, 4); }),
              "INTERLEAVED_1F1B needs several stages on each rank (got virtual_chunks = 1, expected at least 2); try "
              "virtual_chunks = 2 or schedule_type = \"1F1B\"");
}

TEST(Interleaved1f1b, GroupsThatCannotBeAreRefused) {
    const std::string text = testing::error_text(ErrorKind::Plan, [] {
        make_interleaved_1f1b({.size = {4, 2, 8}, .interleave_group = 3});
    });
    EXPECT_CONTAINS(text, "INTERLEAVED_1F1B cannot walk in groups of that many microbatches");
    EXPECT_CONTAINS(text, "try interleave_group_size = 4");
}

}  // namespace
}  // namespace vpp
