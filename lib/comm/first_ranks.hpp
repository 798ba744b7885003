#pragma once
// The first ranks of a job as a transport of their own, for a pipeline that is smaller than the job.
#include "comm/transport.hpp"

namespace vpp {

/// Ranks keep their numbers. The others must not use it; they may use the job's own transport at the same time.
/// Owns: borrows the job's transport, which must outlive it.
class FirstRanks : public Transport {
  public:
    /// Requires: this rank is one of the first `size`.
    FirstRanks(Transport& job, int size);
    int rank() const override { return job_.rank(); }
    int size() const override { return size_; }
    void send(int peer, const Channel& channel, Buffer message) override;
    void post_receive(int peer, const Channel& channel, size_t capacity_bytes) override;
    Buffer receive(int peer, const Channel& channel) override;
    bool has_arrived(int peer, const Channel& channel) override;
    bool carries_device_memory() const override { return job_.carries_device_memory(); }
    void finish_sends() override { job_.finish_sends(); }
    void wait_until(const Wait& what, const std::function<bool()>& done) override { job_.wait_until(what, done); }
    double take_wait_seconds() override { return job_.take_wait_seconds(); }
    void set_deadline(double seconds) override { job_.set_deadline(seconds); }
    double deadline_seconds() const override { return job_.deadline_seconds(); }
    void set_position(const std::string& text) override { job_.set_position(text); }

  private:
    void check_peer(int peer) const;
    Transport& job_;
    int size_;
};

}  // namespace vpp
