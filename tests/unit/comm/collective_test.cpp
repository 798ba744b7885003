#include "comm/collective.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "comm/in_process.hpp"

namespace vpp {
namespace {

InProcessOptions ranks(int num_ranks, uint64_t seed = 1) {
    return {.num_ranks = num_ranks, .seed = seed, .delay_probability = 0.5};
}

Bytes text_of(int rank) {
    return to_bytes(std::string(static_cast<size_t>(rank) * 1000, static_cast<char>('a' + rank)));
}

TEST(Collective, MovesBytesOfEverySizeUnderEverySeed) {
    for (const int num_ranks : {1, 2, 5}) {
        for (uint64_t seed = 0; seed < 20; ++seed) {
            InProcessWorld(ranks(num_ranks, seed)).run([&](Transport& transport) {
                const int rank = transport.rank();
                EXPECT_EQ(broadcast(transport, rank == 0 ? to_bytes("plan") : Bytes()), to_bytes("plan"));
                const auto gathered = gather(transport, text_of(rank));
                EXPECT_EQ(gathered.size(), rank == 0 ? static_cast<size_t>(num_ranks) : 0u);
                barrier(transport);
                const auto all = all_gather(transport, text_of(rank));
                ASSERT_EQ(all.size(), static_cast<size_t>(num_ranks));
                for (int other = 0; other < num_ranks; ++other) {
                    EXPECT_EQ(all[static_cast<size_t>(other)], text_of(other));
                    if (!gathered.empty()) {
                        EXPECT_EQ(gathered[static_cast<size_t>(other)], text_of(other));
                    }
                }
                check_equal(transport, "the plan's digest", "same");
                transport.finish_sends();
            });
        }
    }
}

TEST(Collective, WhatIsSoOnAllRanksButOneIsNotEverywhere) {
    InProcessWorld(ranks(3)).run([&](Transport& transport) {
        EXPECT_TRUE(is_everywhere(transport, true));
        EXPECT_FALSE(is_everywhere(transport, false));
        for (int other = 0; other < 3; ++other) EXPECT_FALSE(is_everywhere(transport, transport.rank() != other));
        transport.finish_sends();
    });
}

TEST(Collective, BarrierHoldsAllRanksBack) {
    int entered = 0;
    InProcessWorld(ranks(4)).run([&](Transport& transport) {
        ++entered;  // one rank runs at a time
        barrier(transport);
        EXPECT_EQ(entered, 4);
    });
}

TEST(Collective, EveryRankHearsWhatDiffers) {
    int told = 0;
    InProcessWorld(ranks(4)).run([&](Transport& transport) {
        try {
            check_equal(transport, "the model's digest", transport.rank() == 2 ? "b\x1b" : "a");
            ADD_FAILURE();
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), ErrorKind::RanksDisagree);
            EXPECT_STREQ(
                error.what(),
                "the model's digest differs between ranks: ranks 0, 1, 3 have \"a\"; rank 2 has \"b?\"; try to "
                "start every rank with the same program and the same files");
            ++told;
        }
    });
    EXPECT_EQ(told, 4);
}

TEST(Collective, OfLongTextsTheFirstLineThatDiffersIsShown) {
    const auto text_of = [](const std::string& one, const std::string& other) {
        try {
            InProcessWorld(ranks(2)).run(
                [&](Transport& transport) { check_equal(transport, "the plan", transport.rank() == 0 ? one : other); });
        } catch (const Error& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    EXPECT_NE(
        text_of("a = 1\nb = 12\nc = 3\n", "a = 1\nb = 13\nc = 3\n").find("0 has \"b = 12\"; rank 1 has \"b = 13\";"),
        std::string::npos);
    EXPECT_NE(text_of("a = 1\n", "a = 1\nb = 2\n").find("rank 0 has \"\"; rank 1 has \"b = 2\";"), std::string::npos);
    EXPECT_NE(text_of("a\nb", "a\nbc").find("rank 0 has \"b\"; rank 1 has \"bc\";"), std::string::npos);
    EXPECT_NE(text_of("x", "").find("rank 0 has \"x\"; rank 1 has \"\";"), std::string::npos);
}

TEST(Collective, DifferentCallsAreNamed) {
    try {
        InProcessWorld(ranks(2)).run([](Transport& transport) {
            if (transport.rank() == 0) {
                gather(transport, {});
            } else {
                barrier(transport);
            }
        });
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::RanksDisagree);
        EXPECT_STREQ(error.what(), "rank 0 is in gather while rank 1 is in barrier");
    }
}

TEST(Collective, ARankThatFailsLeavesNobodyWaiting) {
    EXPECT_THROW(InProcessWorld(ranks(3)).run([](Transport& transport) {
        if (transport.rank() == 1) throw std::logic_error("rank 1 fails");
        barrier(transport);
    }),
                 std::logic_error);
}

TEST(Collective, WhatTheFirstRankMakesOrThrowsReachesAll) {
    InProcessWorld(ranks(3)).run([](Transport& transport) {
        int calls = 0;
        EXPECT_EQ(from_first_rank(transport, [&] { return ++calls, "made"; }), "made");
        EXPECT_EQ(calls, transport.rank() == 0 ? 1 : 0);
        try {
            from_first_rank(transport, []() -> std::string { throw Error(ErrorKind::BadData, "no such thing"); });
            ADD_FAILURE() << "nobody was told";
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), ErrorKind::BadData);
            EXPECT_STREQ(error.what(), "no such thing");
        }
    });
}

}  // namespace
}  // namespace vpp
