#pragma once
// Which replica owns what of a stage: the parameters that are trained, laid end to end, cut into as many contiguous
// shares of nearly equal size as there are replicas. The owner adds the gradients of its share and, with mesh.zero1,
// has the optimizer state of it. Arithmetic only; the same on every rank.
#include <cstdint>
#include <map>
#include <vector>

#include "graph/graph.hpp"
#include "graph/stages.hpp"

namespace vpp {

/// Shares end at a multiple of so many elements of a parameter, or at its end. LibTorch's kernels walk a tensor in
/// vectors, and what is left at its end one by one, with other bits; a cut at a multiple of every vector leaves each
/// element in the loop that it is in when the tensor is whole.
inline constexpr int64_t kGrainElements = 64;

/// Elements [begin, end) of a parameter, counted in the order of its memory.
struct Piece {
    int parameter = 0;
    int64_t begin = 0;
    int64_t end = 0;
    int64_t size() const { return end - begin; }
    bool operator==(const Piece&) const = default;
};

using Pieces = std::vector<Piece>;

int64_t bytes_of(const Graph& graph, const Pieces& pieces);

/// The pieces, end to end, cut into `num_parts` runs of nearly equal bytes; some are empty when there is little. Pieces
/// without elements are in none.
std::vector<Pieces> cut_evenly(const Graph& graph, const Pieces& pieces, int num_parts);

/// What is reduced together: the parameters of one stage, whose gradients are whole at the same moment.
struct ReplicaShares {
    /// `stage` of parameters whose tied copies add their gradients once per step, behind all actions.
    static constexpr int kBehindTies = -1;

    int stage = 0;
    /// A parameter has at most one piece in a share. One without elements, which has an optimizer state as well, is the
    /// first replica's.
    std::vector<Pieces> by_replica;
    /// Each share cut again: by bucket, then by replica. What has no elements is in none; none is empty.
    std::vector<std::vector<Pieces>> buckets;
};

/// For these stages, in this order; then for parameters that are whole behind the ties.
/// A bucket has about `bucket_bytes` over all replicas, and at least a grain.
/// Requires: num_replicas >= 1, bucket_bytes >= 1.
std::vector<ReplicaShares> find_shares(const Graph& graph, const Split& split, const std::vector<int>& stages,
                                       int num_replicas, int64_t bucket_bytes);

/// By parameter the replica that saves it, with its optimizer state: the owner of its first element. Parameters that
/// are not trained, and buffers, are saved by replica 0 and are not in the map.
std::map<int, int> find_writers(const std::vector<ReplicaShares>& shares);

}  // namespace vpp
