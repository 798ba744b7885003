#pragma once
// The first ranks of a job as a transport of their own, for a pipeline that is smaller than the job.
#include "comm/passing_transport.hpp"

namespace vpp {

/// Ranks keep their numbers. The others must not use it; they may use the job's own transport at the same time.
/// Owns: borrows the job's transport, which must outlive it.
class FirstRanks final : public PassingTransport {
  public:
    /// Requires: this rank is one of the first `size`.
    FirstRanks(Transport& job, int size);
    int size() const override { return size_; }
    void send(int peer, const Channel& channel, Buffer message) override;
    void post_receive(int peer, const Channel& channel, size_t capacity_bytes) override;
    void exchange(Exchange messages) override;
    Buffer receive(int peer, const Channel& channel) override;
    bool has_arrived(int peer, const Channel& channel) override;

  private:
    void check_peer(int peer) const;
    int size_;
};

}  // namespace vpp
