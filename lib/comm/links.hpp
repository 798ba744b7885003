#pragma once
// Channels for memory of devices: a link joins two ranks one way, or all ranks of a group, and has an order of its own,
// so that nothing waits for a message of another link. What carries them is NCCL (comm/nccl.hpp) or, in tests, a
// stand-in that records. A transport over links is comm/link_transport.hpp.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "comm/transport.hpp"

namespace vpp {

/// What replicas exchange goes over so many links, contents by turns (Channel::microbatch).
inline constexpr int kLinksOfReplicas = 2;

/// Who sends and who receives, with all values and gradients that go that way, or the replicas of a stage.
struct Link {
    std::vector<int> ranks;  ///< between replicas all of them, and each sends and receives
    bool is_of_replicas = false;
    int number = 0;  ///< which of theirs
    auto operator<=>(const Link&) const = default;
};

/// The link of what replicas exchange under that channel.
Link link_of(const std::vector<int>& replicas, const Channel& channel);

/// The order in which all ranks connect: rounds in which no rank has two links, one behind the other, so that
/// neighbours connect at once and nobody waits in a circle.
std::vector<Link> connect_order(std::vector<Link> links);

/// What the library of a link says when the link fails.
class LinkFailure : public Error {
  public:
    explicit LinkFailure(const std::string& text) : Error(ErrorKind::RankLost, text) {}
};

/// One rank's end of a link. Operations of a link happen in the order in which they are given, at each end; an
/// operation ends when both ends of all that it moves were given it and all before it; a small one that only sends may
/// end before. None of the calls waits. Throws: LinkFailure, from any call.
class LinkEnd {
  public:
    virtual ~LinkEnd() = default;
    /// Whether the connecting, or the operation that was given last, has been taken on; the next one may be given then.
    virtual bool is_ready() = 0;
    /// An operation: by place in the link's ranks, what goes there and how many bytes come from there, all at once.
    /// Sends what the memory holds when all that this thread has given the device until now is done, and keeps it until
    /// num_done() counts the operation. Returns new memory for what comes.
    virtual std::vector<MemoryPart> move(std::vector<MemoryPart> sent, const std::vector<size_t>& received_bytes) = 0;
    /// Memory as move() returns, for what comes another way: this thread has the device fill it.
    virtual MemoryPart make_memory(size_t num_bytes) = 0;
    /// Makes the device wait for what an operation receives (they count from 0): what this thread gives it from now on
    /// finds it filled. False where memory is the host's and not yet filled; to be asked again then.
    /// Requires: is_ready() behind that move.
    virtual bool deliver(int64_t operation) = 0;
    /// Operations that have ended.
    virtual int64_t num_done() = 0;
    /// Whether the times of operations that are given from now on are kept.
    virtual void set_timed(bool is_timed) = 0;
    /// Begin and end of those that were kept, in order, on the host's clock (base/clock_alignment.hpp), nanoseconds;
    /// forgets them. Requires: they have ended.
    virtual std::vector<std::pair<int64_t, int64_t>> take_times() = 0;
    /// Ends at once, whatever the other ranks do; nothing else is called then. May wait for what the device does until
    /// then, and so for other links: of several that are under way all are aborted in LinkMaker::at_once.
    virtual void abort() noexcept = 0;
};

/// Makes the ends of this rank.
class LinkMaker {
  public:
    virtual ~LinkMaker() = default;
    /// A link's name, made by the first of its ranks, for all ends.
    /// Throws: Error{MissingInput} when links cannot be made here at all.
    virtual Bytes make_id() = 0;
    /// Memory of this rank's device, of any content.
    virtual MemoryPart make_memory(size_t num_bytes) = 0;
    /// Whether requests for memory of this rank's device may soon fail.
    virtual bool is_nearly_full() { return false; }
    /// Copies of what the memory holds when all that this thread has given the device until now is done, and into it
    /// for what this thread gives the device from now on. Both wait for the device.
    virtual void read(const MemoryPart& memory, std::span<std::byte> bytes) = 0;
    virtual void write(const MemoryPart& memory, std::span<const std::byte> bytes) = 0;
    /// Begins to connect. `place`: of this rank among the link's.
    virtual std::unique_ptr<LinkEnd> connect(const Bytes& id, int place, int num_ranks) = 0;
    /// Calls `aborts`, which aborts ends of this rank: none of them waits before all have been told.
    virtual void at_once(const std::function<void()>& aborts) noexcept { aborts(); }
};

}  // namespace vpp
