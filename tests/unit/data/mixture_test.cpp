#include "data/mixture.hpp"

#include <set>

#include "data/order.hpp"
#include "unit/data/support.hpp"

namespace vpp::detail {
namespace {

using Numbers = std::vector<int64_t>;

TEST(Mixture, SharesAreTheNearestWithTheirSum) {
    EXPECT_EQ(share_out({1, 1}), (Numbers{5000, 5000}));
    EXPECT_EQ(share_out({0.7, 0.2, 0.1}), (Numbers{7000, 2000, 1000}));
    EXPECT_EQ(share_out({1, 1, 1}), (Numbers{3334, 3333, 3333}));
    EXPECT_EQ(share_out({1e-9, 1}), (Numbers{0, 10000}));
    EXPECT_EQ(share_out({3e300, 1e300}), (Numbers{7500, 2500}));
    EXPECT_EQ(share_out({1e308, 1e308}), (Numbers{5000, 5000}));
    EXPECT_EQ(share_out({5e-324, 1.5e-323}), (Numbers{2500, 7500}));
    EXPECT_EQ(share_out({1e-300, 1e308}), (Numbers{0, 10000}));
    EXPECT_EQ(share_out({42}), Numbers{10000});
}

TEST(Mixture, EveryBlockHasTheSharesOfItsFiles) {
    const Mixture mixture({30, 7, 5}, {0.5, 0.3, 0.2}, 1234, true);
    for (int64_t block = 0; block < 3; ++block) {
        Numbers drawn(3);
        for (int64_t i = 0; i < Mixture::kBlockDraws; ++i) {
            const int64_t sample = mixture.draw(block * Mixture::kBlockDraws + i).sample;
            ++drawn[sample < 30 ? 0 : sample < 37 ? 1 : 2];
        }
        EXPECT_EQ(drawn, (Numbers{5000, 3000, 2000}));
    }
}

TEST(Mixture, NoSampleComesAgainBeforeTheOthersOfItsFile) {
    for (const bool shuffle : {true, false}) {
        const Mixture mixture({30, 7}, {0.9, 0.1}, 7, shuffle);
        int64_t epochs[2] = {0, 0};
        std::set<int64_t> seen[2];
        for (int64_t i = 0; i < 2 * Mixture::kBlockDraws + 50; ++i) {
            const Draw draw = mixture.draw(i);
            const int file = draw.sample < 30 ? 0 : 1;
            if (*draw.epoch != epochs[file]) {
                EXPECT_EQ(*draw.epoch, ++epochs[file]);
                EXPECT_EQ(seen[file].size(), file == 0 ? 30U : 7U);
                seen[file].clear();
            }
            EXPECT_TRUE(seen[file].insert(draw.sample).second);
        }
        EXPECT_EQ(epochs[1], 2005 / 7);
    }
}

TEST(Mixture, FilesTakeTurnsAllTheWay) {
    const Mixture mixture({1000, 1000}, {7, 3}, 3, true);
    for (int64_t begin = 0; begin < Mixture::kBlockDraws; begin += 10) {
        int first = 0;
        for (int64_t i = 0; i < 10; ++i) first += mixture.draw(begin + i).sample < 1000;
        EXPECT_EQ(first, 7);
    }
}

// Computed once by another program from the definitions: checkpoints count on this order.
TEST(Mixture, Golden) {
    const auto drawn = [](uint64_t seed, int64_t first, int64_t count) {
        const Mixture mixture({10, 4}, {0.75, 0.25}, seed, true);
        std::vector<Draw> draws;
        for (int64_t i = first; i < first + count; ++i) draws.push_back(mixture.draw(i));
        return draws;
    };
    EXPECT_EQ(drawn(1234, 0, 20),
              (std::vector<Draw>{{3, 0},  {5, 0}, {10, 0}, {1, 0}, {9, 0},  {0, 0}, {12, 0}, {6, 0}, {2, 0},  {4, 0},
                                 {13, 0}, {7, 0}, {8, 0},  {4, 1}, {11, 0}, {9, 1}, {5, 1},  {7, 1}, {11, 1}, {6, 1}}));
    EXPECT_EQ(drawn(1234, 20000, 3), (std::vector<Draw>{{9, 1500}, {4, 1500}, {12, 1250}}));
    EXPECT_NE(drawn(1234, 0, 20), drawn(5, 0, 20));
    test::error_of(ErrorKind::Bug, [&] { drawn(1234, -1, 1); });
}

TEST(TrainingOrder, WeightsFitTheFiles) {
    const test::TemporaryFolder folder;
    Plan plan;
    plan.data.kind = "text";
    plan.data.sequence_length = 2;
    plan.data.train = {folder.write("a", "0123456"), folder.write("b", "01234")};
    const auto data = open_dataset(plan, Subset::Train);
    EXPECT_EQ(data->file_samples(), (Numbers{3, 2}));
    const SampleOrder plain(5, plan.train.seed, true);
    EXPECT_EQ(training_order(*data, plan).draws(0, 20), plain.draws(0, 20));
    plan.data.weights = {1, 3};
    const Mixture mixture({3, 2}, {1, 3}, plan.train.seed, true);
    for (const int64_t position : {0, 5, 12345}) {
        EXPECT_EQ(training_order(*data, plan).draw(position), mixture.draw(position));
    }
    const auto refusal_of = [&](std::vector<double> weights) {
        plan.data.weights = std::move(weights);
        return test::error_of(ErrorKind::Plan, [&] { training_order(*data, plan); });
    };
    EXPECT_EQ(refusal_of({1, 2, 3}), "data.weights needs a number for each file of data.train (got 3 for 2)");
    EXPECT_EQ(refusal_of({1, 1e-5}),
              "data.weights[1] is too small beside the others: weights are shared out in steps of 1/10000; leave the "
              "file out, or raise it");
}

}  // namespace
}  // namespace vpp::detail
