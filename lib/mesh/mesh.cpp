#include "mesh/mesh.hpp"

#include "base/error.hpp"

namespace vpp {

MeshCoordinate Mesh::coordinate(int rank) const {
    check(rank >= 0 && rank < num_ranks(), "the rank lies inside the mesh");
    return {rank / (dp * tp), rank / tp % dp, rank % tp};
}

int Mesh::rank(const MeshCoordinate& place) const {
    const bool inside =
        place.pp >= 0 && place.pp < pp && place.dp >= 0 && place.dp < dp && place.tp >= 0 && place.tp < tp;
    check(inside, "the place lies inside the mesh");
    return (place.pp * dp + place.dp) * tp + place.tp;
}

std::vector<int> Mesh::pipeline_of(int rank) const {
    MeshCoordinate place = coordinate(rank);
    std::vector<int> ranks;
    for (place.pp = 0; place.pp < pp; ++place.pp) ranks.push_back(this->rank(place));
    return ranks;
}

std::vector<int> Mesh::replicas_of(int rank) const {
    MeshCoordinate place = coordinate(rank);
    std::vector<int> ranks;
    for (place.dp = 0; place.dp < dp; ++place.dp) ranks.push_back(this->rank(place));
    return ranks;
}

std::string Mesh::text() const {
    return "PP " + std::to_string(pp) + " x DP " + std::to_string(dp) + " x TP " + std::to_string(tp);
}

}  // namespace vpp
