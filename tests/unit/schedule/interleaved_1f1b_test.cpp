#include "schedule/interleaved_1f1b.hpp"

#include "unit/schedule/support.hpp"

namespace vpp {
namespace {

using testing::prove;
using testing::texts;

// The table of Megatron-LM's forward_backward_pipelining_with_interleaving, laid by hand: warm-up 4 and 2 forwards.
TEST(Interleaved1f1b, TwoRanksTwoStagesFourMicrobatches) {
    const Schedule schedule = make_interleaved_1f1b({2, 2, 4});
    EXPECT_EQ(schedule.name, "INTERLEAVED_1F1B");
    EXPECT_EQ(schedule.rank_of_stage, (std::vector<int>{0, 1, 0, 1}));
    EXPECT_EQ(texts(schedule), (std::vector<std::string>{
                                   "0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3",
                                   "1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3",
                               }));
}

TEST(Interleaved1f1b, BubbleAndPeakAreTheClosedForms) {
    for (int P = 1; P <= 8; ++P) {
        for (int v = 2; v <= 4; ++v) {
            for (int M : {P, 2 * P, 4 * P}) {
                const auto proved = prove(make_interleaved_1f1b({P, v, M}));
                EXPECT_EQ(proved.simulation.makespan, 3 * M * v + 3 * (P - 1)) << P << ' ' << v << ' ' << M;
                for (int rank = 0; rank < P; ++rank) {
                    const int warmup = 2 * (P - 1 - rank) + (v - 1) * P;
                    EXPECT_EQ(proved.facts.peak_in_flight[static_cast<size_t>(rank)], std::min(warmup + 1, M * v));
                }
            }
        }
    }
}

TEST(Interleaved1f1b, AnyNumberOfMicrobatchesEnds) {
    for (int P = 1; P <= 8; ++P) {
        for (int v = 2; v <= 4; ++v) {
            const std::vector<ScheduleEdge> edges = chain_edges(P * v);
            for (int M = 1; M <= 40; ++M) {
                const Schedule lowered = lower(make_interleaved_1f1b({P, v, M}), edges);
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
    EXPECT_EQ(prove(make_interleaved_1f1b({4, 2, 1})).simulation.makespan, 24);
    EXPECT_EQ(prove(make_interleaved_1f1b({4, 2, 3})).simulation.makespan, 30);
}

TEST(Interleaved1f1b, OneStageOnEachRankIsRefused) {
    EXPECT_EQ(testing::error_text(ErrorKind::Plan,
                                  [] {
                                      make_interleaved_1f1b({2, 1, 4});
                                  }),
              "INTERLEAVED_1F1B needs several stages on each rank (got virtual_chunks = 1, expected at least 2); try "
              "virtual_chunks = 2 or schedule_type = \"1F1B\"");
}

}  // namespace
}  // namespace vpp
