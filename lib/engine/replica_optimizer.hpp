#pragma once
// The optimizer of a rank that has replicas. Every replica updates all of its parameters, or with mesh.zero1 (ZeRO-1,
// arXiv 1910.02054: P_os) only its own share, has the state of that share alone, and takes the rest from its owners.
// Updates are made element by element and shares end where LibTorch's vectors do, so both have the same bits.
//
// Traffic of a step: gradients are whole on every replica before the update, since the global norm is formed from the
// norms of whole parameters. With d replicas and G bytes of parameters each sends 2 G (d - 1) / d for the gradients and
// with zero1 once more G (d - 1) / d for the parameters.
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "engine/replica_pieces.hpp"
#include "optim/optimizer.hpp"
#include "plan/plan.hpp"
#include "program/replica_shares.hpp"
#include "stage/weights.hpp"

namespace vpp {

class ReplicaOptimizer {
  public:
    /// `trained`: owned parameters that require a gradient, ascending; `shares` are of them. `replicas`: the
    /// transport's ranks by DP coordinate, this one among them.
    /// Owns: borrows plan, graph, shares, weights and transport.
    ReplicaOptimizer(const Plan& plan, const Graph& graph, const std::vector<ReplicaShares>& shares,
                     const Weights& weights, const std::vector<int>& trained, Transport& transport,
                     std::vector<int> replicas);

    /// One update.  Calls: collective over the replicas.  Throws: as Optimizer::step.
    void step(int64_t step, int64_t total_steps);
    std::vector<double> learning_rates(int64_t step, int64_t total_steps) const;

    /// The state of whole parameters: of all, or with zero1 of those that this replica saves. Its own tensors where no
    /// other replica has a part of them, else copies.
    /// Calls: collective over the replicas.
    std::vector<StateTensor> state() const;
    /// What this replica saves of state().  Calls: collective over the replicas.
    std::vector<StateTensor> saved_state() const;
    /// The replica that saves a parameter or buffer.
    int writer_of(int parameter) const;
    /// Of what this replica saves, once every parameter has had a gradient.
    int64_t full_state_bytes() const;
    /// As Optimizer::load_state; the reader gives whole tensors.
    void load_state(const StateReader& read);

  private:
    bool is_shared() const { return is_zero1_ && replicas_.size() > 1; }
    const std::string& name_of(int parameter) const;
    void take_gradients();
    void spread_parameters() const;
    void send_slots(const Piece& piece, const std::vector<StateTensor>& slots) const;
    void assemble(const Piece& own, const std::vector<StateTensor>& slots, std::vector<StateTensor>& whole) const;

    const Plan& plan_;
    const Graph& graph_;
    const std::vector<ReplicaShares>& shares_;
    const Weights& weights_;
    std::vector<int> trained_;
    Transport& transport_;
    std::vector<int> replicas_;
    bool is_zero1_;
    size_t own_ = 0;                    ///< in replicas_
    std::map<int, int> writers_;        ///< replica by parameter
    std::vector<Pieces> pieces_;        ///< by replica, over all shares
    std::vector<at::Tensor> elements_;  ///< with zero1: of the own pieces of the parameters
    std::unique_ptr<Optimizer> optimizer_;
};

}  // namespace vpp
