#include "program/replica_shares.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "base/error.hpp"

namespace vpp {

namespace {

int64_t element_bytes(const Graph& graph, int parameter) {
    return static_cast<int64_t>(size_of(graph.parameters[static_cast<size_t>(parameter)].dtype));
}

/// Where a piece that begins `before` bytes behind the first one is cut by a border at `border` bytes: the nearest
/// element at which it may be cut, or one of its ends.
int64_t cut_at(const Graph& graph, const Piece& piece, int64_t before, int64_t border) {
    if (border <= before) return piece.begin;
    const int64_t element = piece.begin + (border - before) / element_bytes(graph, piece.parameter);
    const int64_t grain = (element + kGrainElements / 2) / kGrainElements * kGrainElements;
    return element >= piece.end ? piece.end : std::clamp(grain, piece.begin, piece.end);
}

std::set<int> summed_behind_ties(const Split& split) {
    std::set<int> parameters;
    for (const Edge& edge : split.edges) {
        if (edge.is_tied() && !edge.has_gradient) parameters.insert(edge.parameter);
    }
    return parameters;
}

void add_whole(const Graph& graph, int parameter, Pieces& pieces) {
    const GraphParameter& entry = graph.parameters[static_cast<size_t>(parameter)];
    if (entry.requires_grad) pieces.push_back({parameter, 0, num_elements(entry.shape)});
}

/// As many as there are grains: others would be empty.
int most_buckets(const Pieces& pieces) {
    int64_t num_grains = 0;
    for (const Piece& piece : pieces) num_grains += (piece.size() + kGrainElements - 1) / kGrainElements;
    return static_cast<int>(std::min<int64_t>(num_grains, std::numeric_limits<int>::max()));
}

ReplicaShares share_out(const Graph& graph, int stage, const Pieces& all, int num_replicas, int64_t bucket_bytes) {
    ReplicaShares shares;
    shares.stage = stage;
    shares.by_replica = cut_evenly(graph, all, num_replicas);
    const int64_t wanted_buckets = (bytes_of(graph, all) + bucket_bytes - 1) / bucket_bytes;
    const auto num_buckets = static_cast<int>(std::min<int64_t>(wanted_buckets, most_buckets(all)));
    shares.buckets.resize(static_cast<size_t>(num_buckets));
    for (const Pieces& share : shares.by_replica) {
        std::vector<Pieces> parts = cut_evenly(graph, share, num_buckets);
        for (size_t i = 0; i < parts.size(); ++i) shares.buckets[i].push_back(std::move(parts[i]));
    }
    std::erase_if(shares.buckets, [](const std::vector<Pieces>& bucket) {
        return std::all_of(bucket.begin(), bucket.end(), [](const Pieces& pieces) { return pieces.empty(); });
    });
    for (const Piece& piece : all) {
        if (piece.size() == 0) shares.by_replica.front().push_back(piece);
    }
    return shares;
}

}  // namespace

int64_t bytes_of(const Graph& graph, const Pieces& pieces) {
    int64_t bytes = 0;
    for (const Piece& piece : pieces) bytes += piece.size() * element_bytes(graph, piece.parameter);
    return bytes;
}

std::vector<Pieces> cut_evenly(const Graph& graph, const Pieces& pieces, int num_parts) {
    std::vector<Pieces> parts(static_cast<size_t>(num_parts));
    const int64_t all_bytes = bytes_of(graph, pieces);
    const auto border = [&](int part) {
        return part == num_parts ? all_bytes : all_bytes / num_parts * part + all_bytes % num_parts * part / num_parts;
    };
    int64_t before = 0;
    int first = 0;  // the part in which the piece begins
    for (const Piece& piece : pieces) {
        while (first < num_parts && border(first + 1) <= before) ++first;
        for (int part = first; part < num_parts; ++part) {
            const int64_t begin = cut_at(graph, piece, before, border(part));
            const int64_t end = cut_at(graph, piece, before, border(part + 1));
            if (end > begin) parts[static_cast<size_t>(part)].push_back({piece.parameter, begin, end});
            if (end == piece.end) break;
        }
        before += bytes_of(graph, {piece});
    }
    return parts;
}

std::vector<ReplicaShares> find_shares(const Graph& graph, const Split& split, const std::vector<int>& stages,
                                       int num_replicas, int64_t bucket_bytes) {
    check(num_replicas >= 1 && bucket_bytes >= 1, "shares are made for replicas, buckets hold something");
    const std::set<int> late = summed_behind_ties(split);
    std::vector<ReplicaShares> shares;
    Pieces behind_ties;
    for (int stage : stages) {
        Pieces own;
        for (int parameter : split.stages[static_cast<size_t>(stage)].parameters) {
            add_whole(graph, parameter, late.contains(parameter) ? behind_ties : own);
        }
        shares.push_back(share_out(graph, stage, own, num_replicas, bucket_bytes));
    }
    if (!behind_ties.empty()) {
        shares.push_back(share_out(graph, ReplicaShares::kBehindTies, behind_ties, num_replicas, bucket_bytes));
    }
    return shares;
}

std::map<int, int> find_writers(const std::vector<ReplicaShares>& shares) {
    std::map<int, int> writers;
    for (const ReplicaShares& group : shares) {
        for (size_t replica = 0; replica < group.by_replica.size(); ++replica) {
            for (const Piece& piece : group.by_replica[replica]) {
                if (piece.begin == 0) writers[piece.parameter] = static_cast<int>(replica);
            }
        }
    }
    return writers;
}

}  // namespace vpp
