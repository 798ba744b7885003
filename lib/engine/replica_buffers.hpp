#pragma once
// The buffers and parameters that ops of a step write (batch statistics) follow replica 0: each replica sees other
// samples, and the model has one value. torch's DistributedDataParallel copies buffers ahead of every forward; here
// once, before the update.
#include <vector>

#include "comm/transport.hpp"
#include "engine/replica_pieces.hpp"
#include "stage/weights.hpp"

namespace vpp {

class ReplicaBuffers {
  public:
    /// Those that `weights` owns. `replicas`: the transport's ranks by DP coordinate, this one among them.
    /// Owns: borrows weights and transport.
    ReplicaBuffers(const Graph& graph, const Weights& weights, Transport& transport, std::vector<int> replicas);
    /// Calls: collective over the replicas.
    void follow_first();

  private:
    const Weights& weights_;
    Transport& transport_;
    std::vector<int> replicas_;
    size_t own_ = 0;  ///< in replicas_
    Pieces buffers_;
    std::vector<PieceMessage> messages_;  ///< by replica: the first has all, the others nothing
};

}  // namespace vpp
