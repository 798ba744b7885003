#pragma once
// One-way channels for memory of devices: a link is a direction between two ranks with its own order, so that nothing
// waits for a message of another link. What carries them is NCCL (comm/nccl.hpp) or, in tests, a stand-in that records.
// A transport over links is comm/link_transport.hpp.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "comm/transport.hpp"

namespace vpp {

/// Values of forward passes, gradients, and what replicas send have links apart.
struct Link {
    int from = 0;
    int to = 0;
    Direction kind = Direction::Forward;
    int content = 0;  ///< between replicas: what it is about, which has a link of its own (Channel::microbatch)
    auto operator<=>(const Link&) const = default;
};

/// The link that a channel's device parts go over; none for control messages.
std::optional<Link> link_of(int from, int to, const Channel& channel);

/// The order in which all ranks connect: rounds in which no rank has two links, one behind the other, so that
/// neighbours connect at once and nobody waits in a circle. Of links that are named twice, one.
std::vector<Link> connect_order(std::vector<Link> links);

/// What the library of a link says when the link fails.
class LinkFailure : public Error {
  public:
    explicit LinkFailure(const std::string& text) : Error(ErrorKind::RankLost, text) {}
};

/// One rank's end of a link. Operations of a link happen in the order in which they are given, at each end; an
/// operation ends when both ends were given it and all before it. None of the calls waits.
/// Throws: LinkFailure, from any call.
class LinkEnd {
  public:
    virtual ~LinkEnd() = default;
    /// Whether the connecting, or the operation that was given last, has been taken on; the next one may be given then.
    virtual bool is_ready() = 0;
    /// Sends what the memory holds when all that this thread has given the device until now is done.
    /// Keeps the memory until num_done() counts it.
    virtual void send(MemoryPart memory) = 0;
    /// New memory, which what this thread gives the device behind the next is_ready() finds filled.
    virtual MemoryPart receive(size_t num_bytes) = 0;
    /// Operations that have ended.
    virtual int64_t num_done() = 0;
    /// Whether the times of operations that are given from now on are kept.
    virtual void set_timed(bool is_timed) = 0;
    /// Begin and end of those that were kept, in order, on the host's clock (base/clock_alignment.hpp), nanoseconds;
    /// forgets them. Requires: they have ended.
    virtual std::vector<std::pair<int64_t, int64_t>> take_times() = 0;
    /// Ends all at once, whatever the other rank does; nothing else is called then.
    virtual void abort() noexcept = 0;
};

/// Makes the ends of this rank.
class LinkMaker {
  public:
    virtual ~LinkMaker() = default;
    /// A link's name, made by the rank that sends, for both ends.
    /// Throws: Error{MissingInput} when links cannot be made here at all.
    virtual Bytes make_id() = 0;
    /// Memory of this rank's device, of any content.
    virtual MemoryPart make_memory(size_t num_bytes) = 0;
    /// Begins to connect.
    virtual std::unique_ptr<LinkEnd> connect(const Bytes& id, bool sends) = 0;
};

}  // namespace vpp
