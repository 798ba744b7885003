#include "comm/mpi_wire.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <utility>
#include <vector>

#include "base/elapsed.hpp"
#include "base/error.hpp"
#include "comm/lanes.hpp"

namespace vpp::detail {

namespace {

/// In front of every envelope. `kind` is 0 for a message, else a NoteKind.
struct WireHead {
    int kind = 0;
    int number = 0;  ///< the content's tag, or the note's number
    Channel channel;
    uint64_t num_bytes = 0;
    uint64_t begin_bytes = 0;  ///< so many of them are in the envelope
    uint64_t part_bytes = 0;   ///< so many of them, the last, are for the receiver's device
    uint64_t piece_bytes = 0;  ///< in which those go
};

constexpr size_t kMaxPieceBytes = 2147483647;  // MPI counts in int
constexpr int kEnvelopeTag = 0;
/// So many of the sends under way are looked at each time, in turn: thousands of them must not make every look dear.
constexpr size_t kSendsPerLook = 16;
/// Envelopes and notes stay below the size up to which every MPI transport sends without asking the receiver.
constexpr size_t kMaxNoteBytes = 1024;

/// What of a message an envelope of up to `room_bytes` holds, and the rest, which stays where it is.
struct Portions {
    std::span<std::byte> begin, content;
    std::span<std::byte> on_device;  ///< goes last, when the device has computed it
};

Portions portions_of(Buffer& message, size_t room_bytes) {
    const MemoryPart part = message.part();
    const std::span<std::byte> part_span{part.data.get(), part.num_bytes};
    const bool fits_bytes = message.bytes().size() <= room_bytes;
    if (part.is_on_device) {
        if (fits_bytes) return {message.bytes(), {}, part_span};
        return {{}, message.bytes(), part_span};
    }
    const bool is_short = message.size_bytes() <= room_bytes;
    if (part.num_bytes > 0 && (is_short || !fits_bytes)) message = joined(message);
    if (is_short) return {message.bytes(), {}, {}};
    if (message.part().num_bytes == 0) return {{}, message.bytes(), {}};
    return {message.bytes(), part_span, {}};
}

Bytes envelope_of(const WireHead& head, std::span<const std::byte> content) {
    ByteWriter writer;
    writer.put(head);
    writer.append(content);
    return writer.take();
}

/// Of what goes in pieces, one behind the other.
class Requests {
  public:
    MPI_Request* add() { return &all_.emplace_back(MPI_REQUEST_NULL); }
    /// Looks how many of the first are done now. Gives whether it is more than before.
    bool advance() {
        const size_t before = num_done_;
        for (int done = 1; num_done_ < all_.size(); ++num_done_) {
            check_mpi(MPI_Test(&all_[num_done_], &done, MPI_STATUS_IGNORE), "MPI_Test");
            if (done == 0) break;
        }
        return num_done_ > before;
    }
    size_t num_done() const { return num_done_; }
    bool all_done() const { return num_done_ == all_.size(); }

  private:
    std::vector<MPI_Request> all_;
    size_t num_done_ = 0;
};

}  // namespace

struct MpiWire::State {
    struct Outgoing {
        bool is_note = false;
        int peer = 0;
        Channel channel;
        Bytes envelope;
        Buffer content;
        size_t num_bytes = 0;
        Requests requests;
        int tag = 0;
        std::span<std::byte> rest;             ///< of the content, but for the device's part, what MPI has not got yet
        std::function<size_t()> filled_bytes;  ///< while not all of the device's part has been given to MPI
        size_t given_bytes = 0;                ///< so many of it have

        bool is_given() const { return rest.empty() && !filled_bytes; }
    };
    struct Arrival {
        LaneKey key;
        size_t num_bytes = 0;
        size_t part_bytes = 0;
        size_t piece_bytes = 0;  ///< of the part
        int tag = 0;
        bool started = false;
        bool complete = false;
        Bytes begin;  ///< until it is started
        Buffer content;
        Requests requests, part_requests;

        void make_content() {
            content = Buffer(num_bytes - part_bytes);
            std::copy(begin.begin(), begin.end(), content.bytes().begin());
        }
    };
    struct Envelope {
        Bytes bytes;
        MPI_Request request = MPI_REQUEST_NULL;
    };
    using ArrivalPtr = std::shared_ptr<Arrival>;
    /// MPI pairs what has the same peer and tag in the order of the calls, on either side.
    using PeerAndTag = std::pair<int, int>;

    MpiWireOptions options;
    int rank = 0;
    int num_started = 0;
    MPI_Comm comms[2] = {MPI_COMM_NULL, MPI_COMM_NULL};
    MPI_Request comm_request = MPI_REQUEST_NULL;
    std::vector<int> next_tags;                   // by peer
    std::vector<Clock::time_point> heard;         // by peer
    std::vector<std::deque<Envelope>> envelopes;  // by peer, in the order in which they were sent
    std::list<Outgoing> outgoing;                 // in the order of the sends
    std::list<Outgoing>::iterator next_look = outgoing.end();
    std::map<PeerAndTag, std::deque<Outgoing*>> turns;  // of contents: the first is not all given to MPI, others wait
    std::map<PeerAndTag, std::deque<ArrivalPtr>> unstarted;
    Lanes<Arrival> lanes;
    std::vector<ArrivalPtr> active;
    std::vector<Note> notes;
    DeviceMemory* device = nullptr;
    size_t part_piece_bytes = 0;  ///< in which parts of the device are sent

    MPI_Comm envelope_comm() const { return comms[0]; }
    MPI_Comm content_comm() const { return comms[1]; }

    static std::span<std::byte> take_piece(std::span<std::byte>& content, size_t piece_bytes) {
        const auto piece = content.first(std::min(piece_bytes, content.size()));
        content = content.subspan(piece.size());
        return piece;
    }

    void send_piece(Outgoing& out, std::span<const std::byte> piece) const {
        check_mpi(MPI_Isend(piece.data(), static_cast<int>(piece.size()), MPI_BYTE, out.peer, out.tag, content_comm(),
                            out.requests.add()),
                  "MPI_Isend");
    }

    void receive_pieces(const Arrival& arrival, std::span<std::byte> content, size_t piece_bytes,
                        Requests& requests) const {
        while (!content.empty()) {
            const auto piece = take_piece(content, piece_bytes);
            check_mpi(MPI_Irecv(piece.data(), static_cast<int>(piece.size()), MPI_BYTE, arrival.key.peer, arrival.tag,
                                content_comm(), requests.add()),
                      "MPI_Irecv");
        }
    }

    /// Of contents with one tag all older ones start with it, whether somebody waits for them or not.
    void start_arrival(const ArrivalPtr& arrival) {
        if (arrival->started) return;
        const auto found = unstarted.find({arrival->key.peer, arrival->tag});
        std::deque<ArrivalPtr>& queue = found->second;
        while (!arrival->started) {
            start_receiving(*queue.front());
            active.push_back(std::move(queue.front()));
            queue.pop_front();
        }
        if (queue.empty()) unstarted.erase(found);
    }

    void start_receiving(Arrival& arrival) const {
        arrival.started = true;
        arrival.make_content();
        receive_pieces(arrival, arrival.content.bytes().subspan(arrival.begin.size()), options.piece_bytes,
                       arrival.requests);
        if (arrival.part_bytes == 0) return;
        MemoryPart part = device->take(arrival.part_bytes);
        receive_pieces(arrival, {part.data.get(), part.num_bytes}, arrival.piece_bytes, arrival.part_requests);
        arrival.content.set_part(std::move(part));
    }

    /// Gives MPI what there is of a content; whether there was some.
    bool give(Outgoing& out) const {
        const bool has_rest = !out.rest.empty();
        while (!out.rest.empty()) send_piece(out, take_piece(out.rest, options.piece_bytes));
        return send_filled_pieces(out) || has_rest;
    }

    /// A content whose tag is that of one that still waits for its device goes behind it.
    void give_in_turn(Outgoing& out) {
        const PeerAndTag key{out.peer, out.tag};
        if (!turns.contains(key)) give(out);
        if (!out.is_given()) turns[key].push_back(&out);
    }

    bool give_turns() {
        bool moved = false;
        for (auto turn = turns.begin(); turn != turns.end();) {
            std::deque<Outgoing*>& queue = turn->second;
            while (!queue.empty()) {
                moved |= give(*queue.front());
                if (!queue.front()->is_given()) break;
                queue.pop_front();
            }
            turn = queue.empty() ? turns.erase(turn) : std::next(turn);
        }
        return moved;
    }

    /// Gives whether there were some.
    bool send_filled_pieces(Outgoing& out) const {
        if (!out.filled_bytes) return false;
        const size_t given_before = out.given_bytes;
        const MemoryPart& part = out.content.part();
        const size_t filled_bytes = out.filled_bytes();
        while (out.given_bytes < part.num_bytes) {
            const size_t num_bytes = std::min(part_piece_bytes, part.num_bytes - out.given_bytes);
            if (out.given_bytes + num_bytes > filled_bytes) return out.given_bytes > given_before;
            send_piece(out, {part.data.get() + out.given_bytes, num_bytes});
            out.given_bytes += num_bytes;
        }
        out.filled_bytes = {};
        return true;
    }

    /// What of the sends has gone: of the oldest ones all, so that oldest_send() is no older than it has to be, and of
    /// the others some.
    bool look_at_sends() {
        bool moved = false;
        while (!outgoing.empty() && look_at_send(outgoing.begin(), moved)) continue;
        for (size_t i = std::min(kSendsPerLook, outgoing.size()); i > 0; --i) {
            if (next_look == outgoing.end()) next_look = outgoing.begin();
            const auto send = next_look++;
            look_at_send(send, moved);
        }
        return moved;
    }

    /// Whether it has gone; then it is forgotten.
    bool look_at_send(std::list<Outgoing>::iterator send, bool& moved) {
        moved |= send->requests.advance();
        if (!send->is_given() || !send->requests.all_done()) return false;
        if (next_look == send) ++next_look;
        outgoing.erase(send);
        return true;
    }

    /// A message that is too long is never received; take() says so.
    void start_matched(const Lanes<Arrival>::Match& match) {
        if (!match.arrival || match.arrival->complete || match.arrival->num_bytes > match.capacity_bytes) return;
        start_arrival(match.arrival);
    }

    void open_envelope(int peer, const Bytes& bytes) {
        ByteReader reader(bytes);
        const WireHead head = reader.get<WireHead>();
        if (head.kind != 0) {
            const auto content = reader.take(head.num_bytes);
            notes.push_back({static_cast<NoteKind>(head.kind), peer, head.number, {content.begin(), content.end()}});
            return;
        }
        auto arrival = std::make_shared<Arrival>();
        arrival->key = {peer, head.channel};
        arrival->num_bytes = head.num_bytes;
        arrival->tag = head.number;
        arrival->part_bytes = head.part_bytes;
        arrival->piece_bytes = head.piece_bytes;
        check(head.part_bytes <= head.num_bytes && head.begin_bytes <= head.num_bytes - head.part_bytes,
              "an envelope holds no more than the message");
        check(head.part_bytes == 0 || device != nullptr, "all ranks carry memory of devices, or none");
        check(head.part_bytes == 0 || (head.piece_bytes > 0 && head.piece_bytes <= kMaxPieceBytes),
              "a part goes in pieces");
        const auto begin = reader.take(head.begin_bytes);
        arrival->begin.assign(begin.begin(), begin.end());
        arrival->complete = head.begin_bytes == head.num_bytes;
        if (arrival->complete) {
            arrival->make_content();
        } else {
            unstarted[{peer, arrival->tag}].push_back(arrival);
        }
        const auto match = lanes.add(arrival->key, arrival);
        start_matched(match);
        if (options.accept_unposted && !match.arrival && !arrival->complete) start_arrival(arrival);
    }

    bool take_in_envelopes() {
        bool moved = false;
        for (int found = 1; found != 0;) {
            MPI_Status status;
            check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, kEnvelopeTag, envelope_comm(), &found, &status), "MPI_Iprobe");
            if (found == 0) break;
            int size = 0;
            check_mpi(MPI_Get_count(&status, MPI_BYTE, &size), "MPI_Get_count");
            auto& queue = envelopes[static_cast<size_t>(status.MPI_SOURCE)];
            queue.push_back({Bytes(static_cast<size_t>(size)), MPI_REQUEST_NULL});
            // Takes what was found, since nobody else receives there; MPI_Imrecv fails over some of Open MPI's
            // networks.
            check_mpi(MPI_Irecv(queue.back().bytes.data(), size, MPI_BYTE, status.MPI_SOURCE, kEnvelopeTag,
                                envelope_comm(), &queue.back().request),
                      "MPI_Irecv");
            moved = true;
        }
        for (size_t peer = 0; peer < envelopes.size(); ++peer) {
            auto& queue = envelopes[peer];
            for (int done = 1; done != 0 && !queue.empty();) {
                check_mpi(MPI_Test(&queue.front().request, &done, MPI_STATUS_IGNORE), "MPI_Test");
                if (done == 0) break;
                heard[peer] = Clock::now();
                open_envelope(static_cast<int>(peer), queue.front().bytes);
                queue.pop_front();
                moved = true;
            }
        }
        return moved;
    }
};

MpiWire::MpiWire(const MpiSession& session, const MpiWireOptions& options) : state_(std::make_unique<State>()) {
    check(options.piece_bytes >= 1 && options.piece_bytes <= kMaxPieceBytes, "a piece's size fits MPI's count");
    check(options.num_tags >= 1, "contents need tags");
    const auto size = static_cast<size_t>(session.size());
    state_->options = options;
    state_->rank = session.rank();
    state_->next_tags.resize(size);
    state_->heard.resize(size, Clock::now());
    state_->envelopes.resize(size);
    void* bound = nullptr;
    int known = 0;
    check_mpi(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&bound), &known), "MPI_Comm_get_attr");
    // The standard promises tags up to 32767 where the library names no bound.
    constexpr int kPromisedTags = 32768;
    const int last_tag = known != 0 ? *static_cast<int*>(bound) : kPromisedTags - 1;
    state_->options.num_tags = std::min(options.num_tags, last_tag);
}

bool MpiWire::start() {
    State& state = *state_;
    while (state.num_started < 2) {
        MPI_Comm& comm = state.comms[state.num_started];
        if (comm == MPI_COMM_NULL && state.comm_request == MPI_REQUEST_NULL) {
            check_mpi(MPI_Comm_idup(MPI_COMM_WORLD, &comm, &state.comm_request), "MPI_Comm_idup");
        }
        int done = 0;
        check_mpi(MPI_Test(&state.comm_request, &done, MPI_STATUS_IGNORE), "MPI_Test");
        if (done == 0) return false;
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
        ++state.num_started;
    }
    return true;
}

void MpiWire::use(DeviceMemory& device) {
    state_->device = &device;
    state_->part_piece_bytes = std::min(state_->options.piece_bytes, device.piece_bytes());
}

// Communicators of a job that goes down stay as they are: freeing them may need the lost rank.
MpiWire::~MpiWire() {
    const bool quiet = state_->outgoing.empty() && state_->active.empty();
    for (int i = 0; quiet && i < state_->num_started; ++i) MPI_Comm_free(&state_->comms[i]);
}

void MpiWire::send(int peer, const Channel& channel, Buffer message) {
    State& state = *state_;
    const size_t num_bytes = message.size_bytes();
    const Portions portions = portions_of(message, state.options.inline_bytes);
    State::Outgoing& out = state.outgoing.emplace_back();
    out.peer = peer;
    out.channel = channel;
    out.num_bytes = num_bytes;
    const bool is_whole = portions.content.empty() && portions.on_device.empty();
    if (!is_whole) {
        int& next = state.next_tags[static_cast<size_t>(peer)];
        out.tag = next;
        next = (next + 1) % state.options.num_tags;
    }
    out.envelope = envelope_of(
        {0, out.tag, channel, num_bytes, portions.begin.size(), portions.on_device.size(), state.part_piece_bytes},
        portions.begin);
    check_mpi(MPI_Isend(out.envelope.data(), static_cast<int>(out.envelope.size()), MPI_BYTE, peer, kEnvelopeTag,
                        state.envelope_comm(), out.requests.add()),
              "MPI_Isend");
    if (is_whole) return;
    out.content = std::move(message);
    out.rest = portions.content;
    if (!portions.on_device.empty()) {
        DeviceMemory::Outgoing part = state.device->send(out.content.part());
        out.content.set_part(std::move(part.memory));
        out.filled_bytes = std::move(part.filled_bytes);
    }
    state.give_in_turn(out);
}

void MpiWire::post(int peer, const Channel& channel, size_t capacity_bytes) {
    state_->start_matched(state_->lanes.post({peer, channel}, capacity_bytes));
}

void MpiWire::send_note(const Note& note) {
    State::Outgoing& out = state_->outgoing.emplace_back();
    out.is_note = true;
    out.peer = note.peer;
    const auto content = std::span(note.bytes).first(std::min(note.bytes.size(), kMaxNoteBytes));
    out.envelope = envelope_of({static_cast<int>(note.kind), note.number, {}, content.size(), content.size()}, content);
    check_mpi(MPI_Isend(out.envelope.data(), static_cast<int>(out.envelope.size()), MPI_BYTE, note.peer, kEnvelopeTag,
                        state_->envelope_comm(), out.requests.add()),
              "MPI_Isend");
}

bool MpiWire::progress() {
    State& state = *state_;
    bool moved = state.take_in_envelopes();
    for (const State::ArrivalPtr& arrival : state.active) {
        moved |= arrival->requests.advance();
        moved |= arrival->part_requests.advance();
        arrival->complete = arrival->requests.all_done() && arrival->part_requests.all_done();
    }
    moved |= std::erase_if(state.active, [](const State::ArrivalPtr& arrival) { return arrival->complete; }) > 0;
    moved |= state.give_turns();
    moved |= state.look_at_sends();
    return moved;
}

bool MpiWire::busy() const {
    return !state_->active.empty() || oldest_send().has_value();
}

bool MpiWire::has_arrived(int peer, const Channel& channel) const {
    const auto match = state_->lanes.front({peer, channel});
    return match.arrival && match.arrival->complete;
}

MpiWire::ArrivedPart MpiWire::arrived_part(int peer, const Channel& channel) const {
    const auto match = state_->lanes.front({peer, channel});
    if (!match.arrival || !match.arrival->started) return {};
    const State::Arrival& arrival = *match.arrival;
    return {arrival.content.part(),
            std::min(arrival.part_requests.num_done() * arrival.piece_bytes, arrival.part_bytes)};
}

std::optional<Buffer> MpiWire::take(int peer, const Channel& channel) {
    const LaneKey key{peer, channel};
    const auto match = state_->lanes.front(key);
    if (!match.arrival) return std::nullopt;
    check_capacity(state_->rank, key, match.arrival->num_bytes, match.capacity_bytes);
    if (!match.arrival->complete) return std::nullopt;
    state_->lanes.pop(key);
    return std::move(match.arrival->content);
}

size_t MpiWire::capacity_bytes(int peer, const Channel& channel) const {
    return state_->lanes.front({peer, channel}).capacity_bytes;
}

std::optional<Wait> MpiWire::oldest_send() const {
    for (const State::Outgoing& out : state_->outgoing) {
        if (!out.is_note) return Wait{Wait::Kind::Send, out.peer, out.channel, out.num_bytes, 0};
    }
    return std::nullopt;
}

bool MpiWire::notes_sent() const {
    return std::none_of(state_->outgoing.begin(), state_->outgoing.end(),
                        [](const State::Outgoing& out) { return out.is_note; });
}

std::vector<Note> MpiWire::take_notes() {
    return std::exchange(state_->notes, {});
}

std::vector<double> MpiWire::heard_seconds() const {
    std::vector<double> seconds;
    for (const auto time : state_->heard) {
        seconds.push_back(seconds_since(time));
    }
    return seconds;
}

std::vector<Channel> MpiWire::unposted(int peer) const {
    constexpr size_t kShownChannels = 3;
    return state_->lanes.unposted(peer, kShownChannels);
}

}  // namespace vpp::detail
