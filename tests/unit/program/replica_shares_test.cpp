#include "program/replica_shares.hpp"

#include <gtest/gtest.h>

#include "unit/graph/graphs.hpp"

namespace vpp {
namespace {

/// Parameters of these sizes in one stage, then a frozen one and a buffer.
struct Model {
    Graph graph;
    Split split;
};

Model model_with(const std::vector<int64_t>& sizes) {
    test::GraphMaker maker;
    std::vector<int> values{maker.input("x")};
    for (size_t i = 0; i < sizes.size(); ++i) values.push_back(maker.parameter("p" + std::to_string(i), sizes[i]));
    values.push_back(maker.parameter("frozen", 999, false));
    values.push_back(maker.parameter("buffer", 77, false, true));
    maker.op("", values);
    Model model{maker.finish(), {}};
    model.split = make_stages(model.graph, {});
    return model;
}

Pieces whole(const std::vector<int64_t>& sizes) {
    Pieces pieces;
    for (size_t i = 0; i < sizes.size(); ++i) pieces.push_back({static_cast<int>(i), 0, sizes[i]});
    return pieces;
}

/// Put together again, in order, the parts are the pieces.
Pieces joined(const std::vector<Pieces>& parts) {
    Pieces all;
    for (const Pieces& part : parts) {
        for (const Piece& piece : part) {
            EXPECT_GT(piece.size(), 0);
            const bool goes_on = !all.empty() && all.back().parameter == piece.parameter;
            if (goes_on) {
                EXPECT_EQ(all.back().end, piece.begin);
                all.back().end = piece.end;
            } else {
                all.push_back(piece);
            }
        }
    }
    return all;
}

TEST(ReplicaShares, coverEveryElementOnceAndEndAtGrains) {
    for (const std::vector<int64_t>& sizes :
         {std::vector<int64_t>{1000}, {1, 1, 1}, {64, 640, 6400}, {5, 100000, 7, 130}, {63, 65, 127, 129}, {}}) {
        const Model model = model_with(sizes);
        for (int parts = 1; parts <= 9; ++parts) {
            const std::vector<Pieces> shares = cut_evenly(model.graph, whole(sizes), parts);
            ASSERT_EQ(shares.size(), static_cast<size_t>(parts));
            EXPECT_EQ(joined(shares), whole(sizes));
            for (const Pieces& share : shares) {
                for (const Piece& piece : share) {
                    EXPECT_EQ(piece.begin % kGrainElements, 0);
                    const bool is_end = piece.end == sizes[static_cast<size_t>(piece.parameter)];
                    EXPECT_TRUE(is_end || piece.end % kGrainElements == 0);
                }
            }
        }
    }
}

TEST(ReplicaShares, areEvenToTheGrain) {
    const std::vector<int64_t> sizes{300'000, 17, 5'000, 64, 1'000'000, 3};
    const Model model = model_with(sizes);
    const int64_t all = bytes_of(model.graph, whole(sizes));
    for (int parts : {2, 3, 4, 7, 8}) {
        for (const Pieces& share : cut_evenly(model.graph, whole(sizes), parts)) {
            EXPECT_NEAR(static_cast<double>(bytes_of(model.graph, share)), static_cast<double>(all) / parts,
                        4 * kGrainElements);
        }
    }
}

TEST(ReplicaShares, bucketsHoldEveryShareOnce) {
    const std::vector<int64_t> sizes{3000, 10, 500};
    const Model model = model_with(sizes);
    const std::vector<ReplicaShares> groups = find_shares(model.graph, model.split, {0}, 3, 4000);
    ASSERT_EQ(groups.size(), 1U);
    const ReplicaShares& group = groups[0];
    EXPECT_EQ(group.buckets.size(), 4U) << "3510 x 4 bytes in pieces of 4000";
    EXPECT_EQ(joined(group.by_replica), whole(sizes)) << "neither the frozen parameter nor the buffer";
    for (size_t replica = 0; replica < 3; ++replica) {
        std::vector<Pieces> parts;
        for (const auto& bucket : group.buckets) parts.push_back(bucket[replica]);
        EXPECT_EQ(joined(parts), group.by_replica[replica]);
    }
}

// Each has an optimizer state, which is saved once.
TEST(ReplicaShares, theFirstReplicaOwnsWhatHasNoElements) {
    const Model model = model_with({0, 1000, 0, 1000});
    const std::vector<ReplicaShares> groups = find_shares(model.graph, model.split, {0}, 2, 1 << 20);
    const Pieces first{{1, 0, 1000}, {0, 0, 0}, {2, 0, 0}};
    EXPECT_EQ(groups[0].by_replica, (std::vector<Pieces>{first, Pieces{{3, 0, 1000}}}));
    EXPECT_EQ(find_writers(groups), (std::map<int, int>{{0, 0}, {1, 0}, {2, 0}, {3, 1}}));
    ASSERT_EQ(groups[0].buckets.size(), 1U);
    EXPECT_EQ(groups[0].buckets[0][0], (Pieces{{1, 0, 1000}})) << "nothing of them travels";
    const Model none = model_with({0});
    EXPECT_TRUE(find_shares(none.graph, none.split, {0}, 2, 1 << 20)[0].buckets.empty());
}

TEST(ReplicaShares, bucketsAreNoSmallerThanAGrainAndNoneIsEmpty) {
    const std::vector<int64_t> sizes{3000, 10, 500, 1};
    const Model model = model_with(sizes);
    for (int replicas : {1, 2, 3}) {
        const ReplicaShares group = find_shares(model.graph, model.split, {0}, replicas, 1)[0];
        EXPECT_LE(group.buckets.size(), size_t{47 + 1 + 8 + 1});
        std::vector<Pieces> parts(static_cast<size_t>(replicas));
        for (const std::vector<Pieces>& bucket : group.buckets) {
            size_t num_pieces = 0;
            for (size_t replica = 0; replica < bucket.size(); ++replica) {
                num_pieces += bucket[replica].size();
                parts[replica].insert(parts[replica].end(), bucket[replica].begin(), bucket[replica].end());
            }
            EXPECT_GT(num_pieces, 0U);
        }
        for (size_t replica = 0; replica < parts.size(); ++replica)
            EXPECT_EQ(joined({parts[replica]}), group.by_replica[replica]);
    }
    // Of more bytes than an int counts.
    const Model large = model_with({int64_t{1} << 31});
    EXPECT_LE(find_shares(large.graph, large.split, {0}, 1, 65536)[0].buckets.size(), 131072U);
}

TEST(ReplicaShares, oneReplicaOwnsAllAndTheFirstElementsOwnerSaves) {
    const Model model = model_with({1000, 1000, 1000});
    const auto alone = find_shares(model.graph, model.split, {0}, 1, 1 << 20);
    EXPECT_EQ(alone[0].by_replica, std::vector<Pieces>{whole({1000, 1000, 1000})});
    const auto writers = find_writers(find_shares(model.graph, model.split, {0}, 2, 1 << 20));
    EXPECT_EQ(writers, (std::map<int, int>{{0, 0}, {1, 0}, {2, 1}})) << "the second one is in both shares";
}

TEST(ReplicaShares, tiesThatAreSummedOncePerStepComeBehindAllStages) {
    test::GraphMaker maker;
    const int x = maker.input("x"), tied = maker.parameter("tied", 200), w = maker.parameter("w", 100);
    const int a = maker.op("", {x, tied, w});
    maker.op("", {a, tied});
    const Graph graph = maker.finish();
    Split split = make_stages(graph, {1});
    ASSERT_EQ(find_shares(graph, split, {0, 1}, 2, 1 << 20).size(), 2U);
    sum_ties_per_step(split);
    const auto groups = find_shares(graph, split, {0}, 2, 1 << 20);
    ASSERT_EQ(groups.size(), 2U);
    EXPECT_EQ(joined(groups[0].by_replica), (Pieces{{1, 0, 100}}));
    EXPECT_EQ(groups[1].stage, ReplicaShares::kBehindTies);
    EXPECT_EQ(joined(groups[1].by_replica), (Pieces{{0, 0, 200}}));
}

}  // namespace
}  // namespace vpp
