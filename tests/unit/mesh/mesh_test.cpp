#include "mesh/mesh.hpp"

#include <gtest/gtest.h>

#include <set>

#include "base/error.hpp"

namespace vpp {
namespace {

TEST(Mesh, PipelineAxisIsTheSlowest) {
    const Mesh mesh{2, 3, 2};
    EXPECT_EQ(mesh.num_ranks(), 12);
    EXPECT_EQ(mesh.coordinate(0), (MeshCoordinate{0, 0, 0}));
    EXPECT_EQ(mesh.coordinate(1), (MeshCoordinate{0, 0, 1}));
    EXPECT_EQ(mesh.coordinate(2), (MeshCoordinate{0, 1, 0}));
    EXPECT_EQ(mesh.coordinate(6), (MeshCoordinate{1, 0, 0}));
    EXPECT_EQ(mesh.coordinate(11), (MeshCoordinate{1, 2, 1}));
}

TEST(Mesh, RankAndCoordinateAreInverse) {
    for (int pp = 1; pp <= 4; ++pp) {
        for (int dp = 1; dp <= 3; ++dp) {
            for (int tp = 1; tp <= 3; ++tp) {
                const Mesh mesh{pp, dp, tp};
                for (int rank = 0; rank < mesh.num_ranks(); ++rank) {
                    EXPECT_EQ(mesh.rank(mesh.coordinate(rank)), rank) << mesh.text();
                }
            }
        }
    }
}

TEST(Mesh, PipelinesPartTheRanks) {
    const Mesh mesh{4, 2, 1};
    EXPECT_EQ(mesh.pipeline_of(0), (std::vector<int>{0, 2, 4, 6}));
    EXPECT_EQ(mesh.pipeline_of(5), (std::vector<int>{1, 3, 5, 7}));
    std::set<std::vector<int>> pipelines;
    for (int rank = 0; rank < 8; ++rank) {
        const std::vector<int> pipeline = mesh.pipeline_of(rank);
        EXPECT_EQ(pipeline[static_cast<size_t>(mesh.coordinate(rank).pp)], rank);
        pipelines.insert(pipeline);
    }
    EXPECT_EQ(pipelines.size(), 2U);
}

TEST(Mesh, ReplicasRunTheSameStages) {
    const Mesh mesh{2, 3, 1};
    EXPECT_EQ(mesh.replicas_of(1), (std::vector<int>{0, 1, 2}));
    EXPECT_EQ(mesh.replicas_of(5), (std::vector<int>{3, 4, 5}));
    for (int rank = 0; rank < 6; ++rank) {
        EXPECT_EQ(mesh.replicas_of(rank)[static_cast<size_t>(mesh.coordinate(rank).dp)], rank);
    }
}

TEST(Mesh, TextNamesTheAxes) {
    EXPECT_EQ((Mesh{4, 1, 1}).text(), "PP 4 x DP 1 x TP 1");
}

TEST(Mesh, PlacesOutsideAreBugs) {
    const Mesh mesh{2, 1, 1};
    EXPECT_THROW(mesh.coordinate(-1), Error);
    EXPECT_THROW(mesh.coordinate(2), Error);
    EXPECT_THROW(mesh.rank({0, 1, 0}), Error);
    EXPECT_THROW(mesh.rank({-1, 0, 0}), Error);
    EXPECT_THROW(mesh.pipeline_of(2), Error);
}

}  // namespace
}  // namespace vpp
