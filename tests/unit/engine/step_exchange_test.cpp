#include "engine/step_exchange.hpp"

#include <ATen/ops/full.h>

#include <array>
#include <bit>
#include <cstddef>

#include "optim/norm.hpp"
#include "unit/engine/support.hpp"

namespace vpp::test {
namespace {

constexpr std::array<float, 5> kNorms{3e4F, 1e-3F, 7.77F, 0.123F, 1e4F};

/// The totals of all ranks when parameter p is owned by rank owner[p].
std::vector<StepTotals> exchange(int num_ranks, const std::vector<int>& owner, int loss_rank) {
    std::vector<StepTotals> totals(static_cast<size_t>(num_ranks));
    InProcessWorld({.num_ranks = num_ranks}).run([&](Transport& transport) {
        const int rank = transport.rank();
        StepShare share;
        for (size_t p = 0; p < owner.size(); ++p) {
            if (owner[p] == rank) share.norms.push_back({static_cast<int>(p), at::full({}, kNorms.at(p))});
        }
        if (rank == loss_rank) share.losses = {1.5, 0.1, -2};
        if (rank == loss_rank) share.targets = 42;
        share.wait_seconds = rank + 0.5;
        share.run_seconds = 10 - rank;
        share.memory_bytes = 100 + rank;
        share.parked_bytes = rank == 0 ? 77 : 5;
        share.activation_bytes = rank == 0 ? 8 : 9;
        share.memory_flushes = rank;
        share.nearly_full = rank == 1;
        share.stop = rank == 1;
        share.overflow = rank == 0;
        totals[static_cast<size_t>(rank)] = exchange_step(transport, share);
    });
    return totals;
}

TEST(StepExchange, everyRankGetsTheSameTotals) {
    for (const StepTotals& totals : exchange(3, {0, 1, 2, 1, 0}, 2)) {
        EXPECT_EQ(totals.losses, (std::vector<double>{1.5, 0.1, -2}));
        EXPECT_EQ(totals.targets, 42);
        EXPECT_EQ(totals.wait_seconds, (std::vector<double>{0.5, 1.5, 2.5}));
        EXPECT_EQ(totals.slowest_seconds, 10);
        EXPECT_EQ(totals.memory_bytes, 102);
        EXPECT_EQ(totals.parked_bytes, 77);
        EXPECT_EQ(totals.activation_bytes, 9);
        EXPECT_EQ(totals.memory_flushes, 3);
        EXPECT_TRUE(totals.nearly_full);
        EXPECT_TRUE(totals.stop) << "one rank is enough";
        EXPECT_TRUE(totals.overflow);
        EXPECT_FALSE(totals.save);
    }
}

TEST(StepExchange, everyFigureIsJoined) {
    std::array<std::byte, sizeof(StepFigures)> ones{};
    ones.fill(std::byte{1});  // in each figure something, and in a bool true
    StepShare share;
    static_cast<StepFigures&>(share) = std::bit_cast<StepFigures>(ones);
    InProcessWorld({.num_ranks = 1}).run([&](Transport& transport) {
        EXPECT_TRUE(exchange_step(transport, share).StepFigures::operator==(share));
    });
}

TEST(StepExchange, lossesOfReplicasComeInTheOrderOfTheSamples) {
    InProcessWorld({.num_ranks = 3}).run([](Transport& transport) {
        const int replica = 2 - transport.rank();
        StepShare share;
        share.first_loss = 2 * replica;
        share.losses = {replica + 0.25, replica + 0.5};
        share.reduce_seconds = replica;
        const StepTotals totals = exchange_step(transport, share);
        EXPECT_EQ(totals.losses, (std::vector<double>{0.25, 0.5, 1.25, 1.5, 2.25, 2.5}));
        EXPECT_EQ(totals.reduce_seconds, 2);
    });
}

// Each replica counts the targets of the whole step, and has times of its own for the same stage.
TEST(StepExchange, figuresOfReplicasAreNotAddedUp) {
    InProcessWorld({.num_ranks = 3}).run([](Transport& transport) {
        StepShare share;
        share.targets = 42;
        share.recorded_segments = 2;
        share.by_op_segments = 1;
        share.run_seconds = 1.0 + transport.rank() % 2;
        share.takes_memory = share.save = transport.rank() == 1;
        if (transport.rank() < 2) share.stages.push_back({2, {.forward = 1.0 + transport.rank(), .wait = 8}});
        if (transport.rank() == 2) share.stages.push_back({0, {.backward = 5}});
        const StepTotals totals = exchange_step(transport, share);
        EXPECT_EQ(totals.targets, 42);
        EXPECT_EQ(totals.recorded_segments, 6);
        EXPECT_EQ(totals.by_op_segments, 3);
        EXPECT_EQ(totals.slowest_seconds, 2);
        EXPECT_TRUE(totals.takes_memory && totals.save);
        ASSERT_EQ(totals.stages.size(), 3U);
        EXPECT_EQ(totals.stages[0].backward, 5);
        EXPECT_EQ(totals.stages[1].busy(), 0);
        EXPECT_EQ(totals.stages[2].forward, 1.5);
        EXPECT_EQ(totals.stages[2].wait, 8);
    });
}

TEST(StepExchange, theNormHasTheSameBitsWhoeverOwnsWhat) {
    std::vector<at::Tensor> norms;
    for (float norm : kNorms) norms.push_back(at::full({}, norm));
    const float expected = total_norm(norms).item<float>();
    for (const auto& owner : {std::vector<int>{0, 0, 0, 0, 0}, {3, 2, 1, 0, 3}, {1, 0, 1, 0, 1}, {2, 2, 2, 2, 2}}) {
        for (const StepTotals& totals : exchange(4, owner, 0)) EXPECT_EQ(totals.grad_norm.item<float>(), expected);
    }
}

TEST(StepExchange, withoutGradientsThereIsNoNorm) {
    for (const StepTotals& totals : exchange(2, {}, 1)) EXPECT_FALSE(totals.grad_norm.defined());
}

TEST(StepExchange, twoOwnersOfOneParameterAreABug) {
    const auto body = [](Transport& transport) {
        StepShare share;
        share.norms.push_back({4, at::full({}, 1.0F)});
        exchange_step(transport, share);
    };
    EXPECT_HAS(error_of(ErrorKind::Bug, [&] { InProcessWorld({.num_ranks = 2}).run(body); }), "one owner");
}

}  // namespace
}  // namespace vpp::test
