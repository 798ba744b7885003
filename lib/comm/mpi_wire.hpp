#pragma once
// Messages over MPI without ever waiting; comm/mpi_transport.cpp adds the waits, the thread and the deadlines.
// An envelope goes first: channel, size and the message's beginning: all of a short one, of one that has a part its
// bytes. The receiver pairs it with the posted receive (comm/lanes.hpp), checks the size, allocates exactly that much
// and only then starts to receive the content, which is the rest: in pieces, under the tag that the envelope names,
// from the memory of the part into its place behind the bytes; of a part that lies on a device from where and into what
// comm/device_memory.hpp gives for it, each piece when it is filled. Where tags are fewer than contents, those of one
// tag go one behind the other and start to be received in that order. So any number of channels fits any bound on tags,
// a receive posted early costs no memory, and a message nobody expects can be named.
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.hpp"
#include "comm/device_memory.hpp"
#include "comm/inquiry.hpp"
#include "comm/mpi_session.hpp"
#include "comm/transport.hpp"

namespace vpp::detail {

struct MpiWireOptions {
    size_t piece_bytes = size_t{1} << 30;  ///< at most INT_MAX: MPI counts in int
    size_t inline_bytes = 2048;            ///< what an envelope holds of a message at most
    /// Contents to one peer have so many tags in turn; at most what the MPI library allows. The fewer there are, the
    /// sooner a content starts with an older one of its tag that nobody waits for yet.
    int num_tags = std::numeric_limits<int>::max();
    bool accept_unposted = false;  ///< receive contents before their receive is posted
};

/// Short texts between transports, beside the messages.
enum class NoteKind : int { Ping = 1, Answer = 2, Verdict = 3 };

struct Note {
    NoteKind kind = NoteKind::Ping;
    int peer = 0;
    int number = 0;  ///< which inquiry it belongs to
    Bytes bytes;
};

/// Requires: the session's mutex is held in every call. Throws: Error{RankLost} when an MPI call fails.
class MpiWire {
  public:
    /// Two communicators of its own.  Calls: collective; start() until it returns true, on every rank.
    MpiWire(const MpiSession& session, const MpiWireOptions& options);
    bool start();
    ~MpiWire();

    /// From now on parts may lie on this device. Owns: borrows it; it outlives the wire.
    void use(DeviceMemory& device);

    void send(int peer, const Channel& channel, Buffer message);
    void post(int peer, const Channel& channel, size_t capacity_bytes);
    void send_note(const Note& note);

    /// Moves all that can be moved now; true when something came or went.
    bool progress();
    /// True while contents are on their way in either direction.
    bool busy() const;

    /// Whether the message of a posted receive is complete.
    bool has_arrived(int peer, const Channel& channel) const;
    struct ArrivedPart {
        MemoryPart part;       ///< empty while nothing of it can have come
        size_t num_bytes = 0;  ///< so many of its first ones have
    };
    /// Of the message of a posted receive, what is for the device.
    ArrivedPart arrived_part(int peer, const Channel& channel) const;
    /// The message of a posted receive once it is complete.
    std::optional<Buffer> take(int peer, const Channel& channel);
    size_t capacity_bytes(int peer, const Channel& channel) const;
    /// The send that was started first and has not gone yet.
    std::optional<Wait> oldest_send() const;
    bool notes_sent() const;
    std::vector<Note> take_notes();
    /// Since when nothing has come from each rank.
    std::vector<double> heard_seconds() const;
    std::vector<Channel> unposted(int peer) const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace vpp::detail
