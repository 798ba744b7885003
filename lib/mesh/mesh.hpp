#pragma once
// The DeviceMesh: ranks <-> places on the axes PP, DP, TP, slowest to fastest. Arithmetic only; no MPI.
#include <string>
#include <vector>

namespace vpp {

/// A rank's place on the three axes.
struct MeshCoordinate {
    int pp = 0;
    int dp = 0;
    int tp = 0;
    bool operator==(const MeshCoordinate&) const = default;
};

/// The sizes of the axes.
struct Mesh {
    int pp = 1;
    int dp = 1;
    int tp = 1;

    int num_ranks() const { return pp * dp * tp; }
    /// Requires: 0 <= rank < num_ranks().
    MeshCoordinate coordinate(int rank) const;
    int rank(const MeshCoordinate& place) const;
    /// The ranks of the pipeline that `rank` belongs to, by PP coordinate.
    std::vector<int> pipeline_of(int rank) const;
    /// The ranks that run the same stages as `rank`, itself included, by DP coordinate.
    std::vector<int> replicas_of(int rank) const;
    /// "PP 4 x DP 1 x TP 1"
    std::string text() const;
    bool operator==(const Mesh&) const = default;
};

}  // namespace vpp
