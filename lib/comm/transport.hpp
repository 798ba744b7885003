#pragma once
// Messages between the ranks of a job. One channel per edge, microbatch and direction; a channel carries one message a
// step, in any order relative to other channels. Two implementations: MPI (comm/mpi_transport.hpp) and threads of one
// process (comm/in_process.hpp); over either of them comm/link_transport.hpp moves memory of devices. No call waits
// without a deadline.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "comm/watchdog.hpp"

namespace vpp {

class DeviceMemory;

/// Memory of somebody else, say a tensor's. On a device no byte of it can be read or written here, and the device may
/// still be about to fill it.
struct MemoryPart {
    std::shared_ptr<std::byte> data;  ///< keeps the memory alive
    size_t num_bytes = 0;
    bool is_on_device = false;
};

/// A message's memory: 64-byte aligned, shared between transport and whoever builds tensors over it. What is sent may
/// have a part behind its bytes that lies elsewhere and is not copied; nobody writes into that until it has gone. What
/// is received has one where it lies on a device.
class Buffer {
  public:
    Buffer() = default;
    explicit Buffer(size_t capacity_bytes);
    std::span<std::byte> bytes() { return {data_.get(), size_}; }
    std::span<const std::byte> bytes() const { return {data_.get(), size_}; }
    /// Shortens to what really came.
    void resize(size_t size_bytes);
    /// Keeps the memory alive; tensors made over it hold a copy.
    const std::shared_ptr<std::byte>& owner() const { return data_; }
    explicit operator bool() const { return data_ != nullptr; }
    /// Bytes and part.
    size_t size_bytes() const { return size_ + part_.num_bytes; }
    /// Empty where there is none.
    const MemoryPart& part() const { return part_; }
    void set_part(MemoryPart part) { part_ = std::move(part); }

  private:
    std::shared_ptr<std::byte> data_;
    size_t size_ = 0;
    MemoryPart part_;
};

/// Bytes and part in one piece. Requires: the part is not on a device.
Buffer joined(const Buffer& message);

enum class Direction : uint8_t { Forward = 0, Backward = 1, Control = 2, Replicas = 3 };

/// Names a message between two ranks. Forward and backward: edge and microbatch of the program; control: a number that
/// both sides agree on, of ControlNumber or above zero; replicas: between the copies of a stage, a number as `edge` and
/// what it is about as `microbatch` (engine/replica_pieces.hpp).
struct Channel {
    int edge = 0;
    int microbatch = 0;
    Direction direction = Direction::Forward;
    bool operator==(const Channel&) const = default;
};

/// Numbers of vpp's own control messages: below zero, so that they never meet those that others choose.
enum ControlNumber : int {
    kCollectiveHead = -1,
    kCollectiveContent = -2,
    kClockQuestion = -3,
    kClockAnswer = -4,
    kTimedThere = -5,
    kTimedBack = -6,
    kShardPiece = -7,
};

/// "forward edge 3, microbatch 2"; of a control channel "control message 5" or, below zero, "a collective call";
/// between replicas "message 4 between replicas".
std::string to_text(const Channel& channel);

/// Where a rank stands in a group. Requires: it is of it.
size_t place_of(int rank, const std::vector<int>& ranks);

/// Of a message that is to come: its bytes and its part.
struct MessageSize {
    size_t num_bytes = 0;
    size_t part_bytes = 0;
};

/// Of a receive whose message has no bound.
constexpr size_t kAnySize = std::numeric_limits<size_t>::max();

/// What the ranks of a group send each other at once.
struct Exchange {
    std::vector<int> ranks;             ///< the group, in one order on all of them, this rank among them
    Channel channel;                    ///< between replicas
    std::vector<Buffer> sent;           ///< by rank of the group; none where nothing goes
    std::vector<MessageSize> expected;  ///< by rank of the group; 0 bytes where nothing comes
};

/// A wait that has not ended yet.
struct Wait {
    enum class Kind : uint8_t { Receive = 0, Send = 1 };
    Kind kind = Kind::Receive;
    int peer = 0;
    Channel channel;
    size_t num_bytes = 0;  ///< of a receive the most that may come, or kAnySize; of a send its size
    double seconds = 0;    ///< how long it has lasted
};

/// When a device moved the part of a message; on this rank's clock (base/clock_alignment.hpp), nanoseconds.
struct PartSpan {
    int peer = 0;
    Channel channel;
    bool sends = false;
    int64_t begin = 0;
    int64_t end = 0;
};

/// Begins and ends of parts that were moved in this order. Requires: as many.
void set_times(std::vector<PartSpan>& spans, const std::vector<std::pair<int64_t, int64_t>>& times);

class Transport {
  public:
    virtual ~Transport() = default;
    virtual int rank() const = 0;
    virtual int size() const = 0;

    /// Whether parts of messages may lie in the memory of this rank's device. The others refuse such as a bug; what
    /// they received has no part.
    virtual bool carries_device_memory() const { return false; }
    /// From now on they may, where the transport is one that moves `device`'s memory; others go on as they are.
    /// Requires: called on all ranks, before the first such part, by the thread that computes.
    virtual void carry(std::unique_ptr<DeviceMemory> device);

    /// Whether a part that is under way may hold up this rank's device until the peer comes: who waits for all that the
    /// device does then waits for the peer.
    virtual bool may_hold_device() const { return false; }

    /// Whether parts go through the host instead, and hold up no device: for who may take memory or load kernels. They
    /// take as much memory of the device as they would otherwise, unless it is nearly full.
    virtual bool goes_through_host() const { return false; }
    /// Requires: the same on all ranks of a group when one of its exchanges starts.
    virtual void set_through_host(bool) {}

    /// From now on notes when devices move parts, or no longer.
    virtual void time_parts(bool) {}
    /// Of what was noted since the last call. Requires: finish_sends() after it.
    virtual std::vector<PartSpan> take_part_spans() { return {}; }

    /// Starts sending; the transport keeps the buffer until it has gone.
    virtual void send(int peer, const Channel& channel, Buffer message) = 0;

    /// Makes a receive ready before its message comes. `capacity_bytes` bounds the message, unless it is kAnySize; a
    /// longer one is an error. A channel may be posted once per message.
    virtual void post_receive(int peer, const Channel& channel, size_t capacity_bytes) = 0;

    /// Posts the receives of an exchange and starts its sends; receive() takes what comes, peer by peer. Parts of its
    /// messages are filled when all of them were taken.
    /// Requires: all ranks of the group start the exchanges of contents with one link (kLinksOfReplicas) in one order.
    virtual void exchange(Exchange messages);

    /// The message of a posted channel. Waits at most until the deadline, then throws Error{RankLost} that names
    /// peer, channel, bytes and the time waited, and says whether the peer still answers.
    virtual Buffer receive(int peer, const Channel& channel) = 0;

    /// Whether receive() of a posted channel would return at once. Moves messages, never waits.
    virtual bool has_arrived(int peer, const Channel& channel) = 0;

    /// Waits until all started sends have gone (deadline as in receive).
    virtual void finish_sends() = 0;

    /// Waits, as receive does, for something that comes by another way than this transport's messages: `done` is asked
    /// again and again, `what` is what a report says of the wait. What done throws ends it.
    virtual void wait_until(const Wait& what, const std::function<bool()>& done) = 0;

    /// For what a device waits while this rank, which may wait for its device, calls nothing here: when it lasts longer
    /// than a wait may, and the phase still lives, the job ends with a sentence that names it. Without a watchdog
    /// empty.
    virtual Watchdog::Phase begin_device_wait(const Wait&) { return {}; }

    /// Behind an error, when what is left to do may wait for ever: while the phase lives, and for so many seconds, the
    /// job may end by itself; then it ends with that sentence and code. Without a watchdog empty.
    virtual Watchdog::Phase begin_end(const std::string& /*text*/, double /*seconds*/, int /*code*/) { return {}; }

    /// Seconds spent waiting in receive and finish_sends since the last call.
    virtual double take_wait_seconds() = 0;

    /// The deadline of every wait from now on.
    virtual void set_deadline(double seconds) = 0;
    virtual double deadline_seconds() const = 0;

    /// What this rank does, for its peers' error messages: "stage 2, F of microbatch 3".
    virtual void set_position(const std::string& text) = 0;
};

/// Has parts go through the host as long as it lives, where `is_so` or they do already.
class ThroughHost {
  public:
    ThroughHost(Transport& transport, bool is_so) : transport_(transport), was_so_(transport.goes_through_host()) {
        transport_.set_through_host(was_so_ || is_so);
    }
    ~ThroughHost() { transport_.set_through_host(was_so_); }
    ThroughHost(const ThroughHost&) = delete;
    ThroughHost& operator=(const ThroughHost&) = delete;

  private:
    Transport& transport_;
    bool was_so_;
};

}  // namespace vpp
