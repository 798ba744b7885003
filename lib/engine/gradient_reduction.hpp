#pragma once
// The gradients of replicas become their sum, the same bits on each: ((g_0 + g_1) + g_2) + ..., in the order of the DP
// coordinate, whatever the transport. Every replica owns a share of each bucket: it receives that share of the others,
// adds, and sends the sums back. Each sends and receives 2 (d - 1) / d of the gradients, as in a ring.
//
// A stage's buckets start at its REDUCE_GRAD and move on between later actions: each exchanges gradients, then sums,
// neither before those that were started earlier; what is not done at the end of the actions is waited for. A gradient
// that no replica has stays undefined; one that some have is the sum of those.
#include <cstddef>
#include <deque>
#include <set>
#include <vector>

#include "comm/transport.hpp"
#include "engine/replica_pieces.hpp"
#include "program/replica_shares.hpp"
#include "stage/weights.hpp"

namespace vpp {

class GradientReduction {
  public:
    /// Buckets that are under way at once: each takes memory for its messages.
    static constexpr size_t kMostActive = 4;

    /// `replicas`: the transport's ranks by DP coordinate, this one among them.
    /// Owns: borrows weights and transport; shares no tensors.
    GradientReduction(const Graph& graph, const std::vector<ReplicaShares>& shares, const Weights& weights,
                      Transport& transport, std::vector<int> replicas);

    /// The gradients of the stage are what this replica adds. Sends shares and does not wait.
    /// Throws: Error{BadData} for a gradient that is not laid out as its parameter.
    /// Calls:  in the same order on every replica.
    void start(int stage);
    /// Goes on with what has arrived.
    void advance();
    /// Waits until all that was started is done.  Calls: collective over the replicas.
    void finish();
    /// Seconds that finish took since the last call: what no action has hidden.
    double take_exposed_seconds();

  private:
    struct Bucket {
        int number = 0;
        int stage = 0;
        std::vector<Pieces> pieces;          ///< by replica
        std::vector<PieceMessage> messages;  ///< by replica
    };
    /// A bucket under way.
    struct Active {
        const Bucket* bucket = nullptr;
        bool is_summed = false;  ///< this replica's share, and on its way to the others
    };

    void activate_next();
    bool has_arrived(const Bucket& bucket, ReplicaContent content) const;
    void add_up(Active& active);
    void take_sums(const Bucket& bucket);
    std::vector<at::Tensor> gradients_of(const Pieces& pieces) const;
    void write(const Pieces& pieces, const std::vector<at::Tensor>& sums) const;

    const Graph& graph_;
    const Weights& weights_;
    Transport& transport_;
    std::vector<int> replicas_;
    size_t own_ = 0;  ///< in replicas_
    std::vector<Bucket> buckets_;
    std::deque<const Bucket*> waiting_;
    std::deque<Active> active_;
    std::set<int> absent_;  ///< parameters of which this replica has no gradient to add
    double exposed_seconds_ = 0;
};

}  // namespace vpp
