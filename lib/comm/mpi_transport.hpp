#pragma once
// The transport between processes. What goes over MPI and how messages find their receives is comm/mpi_wire.hpp; here
// are the waits with their deadlines, the thread that keeps messages moving and answers for this rank while ops run,
// and the inquiry that names a lost rank.
#include <cstddef>
#include <memory>
#include <string>

#include "comm/device_memory.hpp"
#include "comm/mpi_session.hpp"
#include "comm/transport.hpp"
#include "comm/watchdog.hpp"

namespace vpp {

struct MpiTransportOptions {
    double deadline_seconds = 300;
    bool overlap = true;                   ///< false: a send has gone before send() returns
    size_t piece_bytes = size_t{1} << 30;  ///< longer messages go in pieces; at most INT_MAX
    Watchdog* watchdog = nullptr;          ///< outlives the transport
};

/// One thread of a rank calls it, any one at a time.
/// A wait that passes its deadline has asked all ranks what they do a second before (or gives them a second when the
/// deadline is shorter). One rank reports: its wait throws Error{RankLost} with the sentence of lost_text(). The others
/// get no say for a few seconds, in which the job is expected to end. With a watchdog the process is ended hard when it
/// still lives one second after that error, so an engine must not go on behind it.
class MpiTransport final : public Transport {
  public:
    /// Calls: collective over all ranks of the session.
    /// Throws: Error{RankLost} when the others do not follow within the deadline.
    MpiTransport(MpiSession& session, const MpiTransportOptions& options = {});
    /// Waits a little for sends under way; when they do not go, MPI is left open (MpiSession::keep_open).
    ~MpiTransport() override;

    /// A part that is sent goes when the device has computed it, behind send(); one that comes is there for what the
    /// device is given behind receive(). Requires: MPI moves what `device` gives it (mpi_moves_device_memory).
    void carry(std::unique_ptr<DeviceMemory> device) override;
    bool carries_device_memory() const override;
    void time_parts(bool on) override;
    std::vector<PartSpan> take_part_spans() override;

    int rank() const override;
    int size() const override;
    void send(int peer, const Channel& channel, Buffer message) override;
    void post_receive(int peer, const Channel& channel, size_t capacity_bytes) override;
    Buffer receive(int peer, const Channel& channel) override;
    bool has_arrived(int peer, const Channel& channel) override;
    void finish_sends() override;
    void wait_until(const Wait& what, const std::function<bool()>& done) override;
    Watchdog::Phase begin_device_wait(const Wait& what) override;
    Watchdog::Phase begin_end(const std::string& text, double seconds, int code) override;
    double take_wait_seconds() override;
    void set_deadline(double seconds) override;
    double deadline_seconds() const override;
    void set_position(const std::string& text) override;
    /// What it was set to last. Calls: from any thread.
    std::string position() const;

  private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace vpp
