#pragma once
// Numbers for messages, so that what is known of them lies in arrays.
#include <cstdint>
#include <vector>

#include "schedule/schedule.hpp"

namespace vpp {

/// Edge ids, which may be any numbers from 0, as 0, 1, 2, ...
class EdgeNumbers {
  public:
    static constexpr int kNone = -1;

    EdgeNumbers() = default;
    /// In ascending order of `ids`; repeated ones count once.
    explicit EdgeNumbers(std::vector<int> ids);

    /// kNone for an id that is not there.
    int find(int id) const;
    size_t size() const { return ids_.size(); }

  private:
    std::vector<int> ids_;  ///< ascending
};

/// A message is one edge's value or gradient of one microbatch: a SEND and its RECV have the same number.
class MessageNumbers {
  public:
    /// Of all transfers of a lowered schedule.
    /// Requires: edges are not negative; microbatches are those of the schedule.
    explicit MessageNumbers(const Schedule& lowered);

    size_t operator()(const Action& transfer) const {
        const auto edge = static_cast<size_t>(edges_.find(transfer.edge));
        return (edge * 2 + (carries_gradient(transfer.kind) ? 1 : 0)) * num_microbatches_ +
               static_cast<size_t>(transfer.microbatch);
    }
    /// All numbers are below this.
    size_t size() const { return edges_.size() * 2 * num_microbatches_; }

  private:
    EdgeNumbers edges_;
    size_t num_microbatches_ = 0;
};

/// One way between two ranks, as NCCL has them: messages of a channel are received in the order in which they are sent.
/// The number of (from rank, to rank), for values and gradients; a SEND and its RECV have the same.
/// Requires: rank and peer are ranks of the schedule.
inline size_t channel_number(const Action& transfer, int rank, int num_ranks) {
    const int from = is_send(transfer.kind) ? rank : transfer.peer, to = is_send(transfer.kind) ? transfer.peer : rank;
    return static_cast<size_t>(from) * static_cast<size_t>(num_ranks) + static_cast<size_t>(to);
}

}  // namespace vpp
