#include "comm/transport_kinds.hpp"

#include <gtest/gtest.h>

#include "comm/in_process.hpp"
#include "comm/nccl.hpp"
#include "unit/schedule/support.hpp"

namespace vpp {
namespace {

/// What each rank is told: the kind, or the error.
std::vector<std::string> chosen(const std::string& kind, const std::vector<RankCard>& cards) {
    std::vector<std::string> told(cards.size());
    InProcessWorld({.num_ranks = static_cast<int>(cards.size())}).run([&](Transport& transport) {
        const auto rank = static_cast<size_t>(transport.rank());
        try {
            told[rank] = choose_transport(transport, kind, cards[rank]);
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), ErrorKind::Plan);
            told[rank] = error.what();
        }
    });
    return told;
}

TEST(TransportKinds, NcclComesWithItsParts) {
    const std::vector<std::string> kinds = transport_kinds();
    EXPECT_EQ(kinds.size(), nccl_version().empty() ? 2U : 3U);
    EXPECT_EQ(kinds[0], "auto");
    EXPECT_EQ(kinds[1], "mpi");
}

TEST(ChooseTransport, AutoIsNcclWhereEveryRankHasItsOwnCard) {
    using Kinds = std::vector<std::string>;
    EXPECT_EQ(chosen("auto", {{"GPU-a"}, {"GPU-b"}, {"GPU-c"}}), Kinds(3, "nccl"));
    EXPECT_EQ(chosen("auto", {{"GPU-a"}, {"GPU-b"}, {"GPU-a"}}), Kinds(3, "mpi"));
    EXPECT_EQ(chosen("auto", {{"GPU-a"}, {""}, {"GPU-b"}}), Kinds(3, "mpi"));
    EXPECT_EQ(chosen("mpi", {{"GPU-a"}, {"GPU-b"}}), Kinds(2, "mpi"));
    EXPECT_EQ(chosen("nccl", {{"GPU-a"}, {"GPU-b"}}), Kinds(2, "nccl"));
}

TEST(ChooseTransport, TwoRanksOnOneCardAreNamed) {
    for (const std::string& told : chosen("nccl", {{"GPU-a"}, {"GPU-b"}, {"GPU-c"}, {"GPU-b"}})) {
        EXPECT_CONTAINS(told,
                        "rank 1 and rank 3 use the same card (GPU-b), and NCCL needs one for each rank; set "
                        "mesh.transport = \"mpi\"");
    }
}

TEST(ChooseTransport, RanksThatNcclTakesForOnesOfDifferentHostsMayShareACard) {
    const auto on = [](const char* host) { return RankCard{.id = "GPU-a", .host = host}; };
    EXPECT_EQ(chosen("nccl", {on("one"), on("other")}), std::vector<std::string>(2, "nccl"));
    EXPECT_EQ(chosen("auto", {on("one"), on("other")}), std::vector<std::string>(2, "mpi"));
    EXPECT_CONTAINS(chosen("nccl", {on("one"), on("other"), on("one")})[1], "rank 0 and rank 2 use the same card");
}

TEST(ChooseTransport, PartsOfACardAreOneCardToNccl) {
    const auto part = [](const char* id, const char* slot) { return RankCard{.id = id, .slot = slot}; };
    const std::vector<RankCard> cards{part("GPU-a", "one 0000:3b:00"), part("GPU-b", "one 0000:86:00"),
                                      part("GPU-c", "one 0000:3b:00")};
    EXPECT_EQ(chosen("auto", cards), std::vector<std::string>(3, "mpi"));
    EXPECT_CONTAINS(chosen("nccl", cards)[1],
                    "rank 0 and rank 2 use parts of one card (GPU-a and GPU-c), and NCCL needs a card for each rank; "
                    "set mesh.transport = \"mpi\"");
    EXPECT_EQ(chosen("auto", {part("GPU-a", "one 0000:3b:00"), part("GPU-c", "two 0000:3b:00")})[0], "nccl");
    EXPECT_EQ(chosen("auto", {part("GPU-a", ""), part("GPU-c", "")})[0], "nccl") << "where it is not known";
}

TEST(ChooseTransport, ARankWithoutACardIsNamed) {
    for (const std::string& told : chosen("nccl", {{"GPU-a"}, {""}})) {
        EXPECT_CONTAINS(told, "rank 1 computes on the CPU, and NCCL moves memory of cards");
    }
}

TEST(ChooseTransport, ARankThatWaitsForItsKernelsIsNamed) {
    const std::vector<RankCard> cards{{"GPU-a"}, {.id = "GPU-b", .is_waited_for = true}};
    for (const std::string& told : chosen("nccl", cards)) {
        EXPECT_EQ(told,
                  "rank 1 waits for each kernel (CUDA_LAUNCH_BLOCKING=1), so that ranks which send by NCCL could wait "
                  "for each other; set mesh.transport = \"mpi\", or leave the variable out");
    }
    EXPECT_EQ(chosen("auto", cards), std::vector<std::string>(2, "mpi"));
}

}  // namespace
}  // namespace vpp
