#include "comm/link_transport.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "comm/lanes.hpp"

namespace vpp {

namespace {

/// Behind the bytes of every message that may have a device part.
struct PartNote {
    uint64_t num_bytes = 0;  ///< 0: it has none
    int64_t number = 0;      ///< of its link, from 0; below: the part is between bytes and note
    int64_t taken = 0;       ///< so many operations the sender was given of what the other rank sends it
};

constexpr size_t kIdBytes = 4096;  // more than any library's names have

// What aborting may take. Where another error is on its way that one is to be said, if at all possible.
constexpr double kAbortSeconds = 5, kUnknownAbortSeconds = 30;

std::string link_text(const Link& link) {
    if (!link.is_of_replicas) {
        return "link from rank " + std::to_string(link.ranks[0]) + " to rank " + std::to_string(link.ranks[1]);
    }
    std::string text = "link " + std::to_string(link.number) + " between replicas on ranks";
    for (size_t i = 0; i < link.ranks.size(); ++i) text += (i == 0 ? " " : ", ") + std::to_string(link.ranks[i]);
    return text;
}

bool has_link(const Channel& channel) {
    return channel.direction == Direction::Forward || channel.direction == Direction::Backward;
}

/// With room between its bytes and the note.
Buffer with_note(const Buffer& message, const PartNote& note, size_t room_bytes = 0) {
    const std::span<const std::byte> bytes = message.bytes();
    Buffer noted(bytes.size() + room_bytes + sizeof(note));
    std::copy(bytes.begin(), bytes.end(), noted.bytes().begin());
    std::memcpy(noted.bytes().data() + bytes.size() + room_bytes, &note, sizeof(note));
    return noted;
}

/// What is behind the bytes that are left.
PartNote take_note(Buffer& message) {
    PartNote note;
    check(message.bytes().size() >= sizeof(note), "a message ends with the note of its device part");
    const size_t num_bytes = message.bytes().size() - sizeof(note);
    std::memcpy(&note, message.bytes().data() + num_bytes, sizeof(note));
    message.resize(num_bytes);
    return note;
}

void check_number(const Link& link, const Channel& channel, int64_t sent, int64_t received) {
    check(sent == received, to_text(channel) + " was sent as message " + std::to_string(sent) + " of the " +
                                link_text(link) + " and is received as message " + std::to_string(received));
}

}  // namespace

LinkTransport::LinkTransport(Transport& bytes, const std::vector<Link>& links, LinkMaker& maker,
                             double patience_seconds)
    : PassingTransport(bytes), maker_(maker), patience_seconds_(patience_seconds) {
    try {
        const std::vector<Link> order = connect_order(links);
        for (size_t i = 0; i < order.size(); ++i) {
            const std::vector<int>& ranks = order[i].ranks;
            if (std::find(ranks.begin(), ranks.end(), rank()) == ranks.end()) continue;
            set_position("connecting the " + link_text(order[i]));
            connect(order[i], static_cast<int>(i));
        }
    } catch (const std::exception& error) {
        give_up(error);
        throw;
    }
}

/// Idle ones too: each by itself would wait for the library with no deadline.
LinkTransport::~LinkTransport() {
    abort("the links between cards do not end", kUnknownAbortSeconds, exit_code(ErrorKind::RankLost));
}

template <typename Use>
void LinkTransport::watch(const Link& link, const Use& use) const {
    try {
        use();
    } catch (const LinkFailure& failure) {
        constexpr double kYieldSeconds = 0.4;  // of ranks that know no more the lowest one speaks
        const bool is_lowest = rank() == *std::min_element(link.ranks.begin(), link.ranks.end());
        const double yield_seconds = is_lowest ? 0 : kYieldSeconds;
        std::this_thread::sleep_for(std::chrono::duration<double>(patience_seconds_ + yield_seconds));
        throw Error(ErrorKind::RankLost, "the " + link_text(link) + " has failed: " + failure.what());
    }
}

void LinkTransport::connect(const Link& link, int number) {
    const Channel channel{number, 0, Direction::Control};
    const Bytes id = agree_on_id(link, channel);
    const size_t place = place_of(rank(), link.ranks);
    const bool sends = link.is_of_replicas || place == 0, receives = link.is_of_replicas || place == 1;
    const int peer = link.ranks[place == 0 ? 1 : 0];
    const Wait what{receives ? Wait::Kind::Receive : Wait::Kind::Send, peer, channel, 1, 0};
    End& end = ends_[link];
    end.name = link;
    watch(link, [&] {
        end.link = maker_.connect(id, static_cast<int>(place), static_cast<int>(link.ranks.size()));
        wait_until(what, [&] { return end.link->is_ready(); });
    });
    std::vector<MemoryPart> sent(link.ranks.size());
    std::vector<size_t> received_bytes(link.ranks.size());
    for (size_t i = 0; i < link.ranks.size(); ++i) {
        if (i == place) continue;
        if (sends) sent[i] = maker_.make_memory(1);
        received_bytes[i] = receives ? 1 : 0;
    }
    start(end, what, std::move(sent), received_bytes);
    finish(end, end.num_started);
    PassingTransport::finish_sends();
}

/// The first of the ranks has it made.
Bytes LinkTransport::agree_on_id(const Link& link, const Channel& channel) {
    const int first = link.ranks.front();
    if (rank() != first) {
        PassingTransport::post_receive(first, channel, kIdBytes);
        const Buffer message = PassingTransport::receive(first, channel);
        return {message.bytes().begin(), message.bytes().end()};
    }
    Bytes id = maker_.make_id();
    for (int peer : link.ranks) {
        if (peer == first) continue;
        Buffer message(id.size());
        std::copy(id.begin(), id.end(), message.bytes().begin());
        PassingTransport::send(peer, channel, std::move(message));
    }
    return id;
}

LinkTransport::End& LinkTransport::end_of(const Link& link) {
    End* const end = find_end(link);
    check(end != nullptr, "there is no " + link_text(link));
    return *end;
}

/// Null where parts go through the host in every step.
LinkTransport::End* LinkTransport::find_end(const Link& link) {
    const auto end = ends_.find(link);
    return end == ends_.end() ? nullptr : &end->second;
}

/// What a use of links or of the bytes' transport throws leaves when all links are aborted.
void LinkTransport::guarded(const std::function<void()>& use) {
    absence_.end();
    try {
        use();
    } catch (const std::exception& error) {
        give_up(error);
        throw;
    }
    watch_absence();
}

/// The memory of what it receives, to be filled: deliver().
std::vector<MemoryPart> LinkTransport::start(End& end, const Wait& what, std::vector<MemoryPart> sent,
                                             const std::vector<size_t>& received_bytes) {
    for (auto& [link, other] : ends_) let_go(other);
    std::vector<MemoryPart> received;
    // Memory for what comes may be had only behind all that the device does, sends too.
    const bool takes_memory = std::ranges::any_of(received_bytes, [](size_t num_bytes) { return num_bytes > 0; });
    const Watchdog::Phase taking = takes_memory ? begin_device_wait(what) : Watchdog::Phase();
    watch(end.name, [&] {
        received = end.link->move(std::move(sent), received_bytes);
        end.under_way.push_back({what});
        if (is_timed_) end.timed.push_back({what.peer, what.channel, what.kind == Wait::Kind::Send, 0, 0});
        ++end.num_started;
        if (!end.link->is_ready()) wait_until(what, [&] { return end.link->is_ready(); });
    });
    watch_receives();
    return received;
}

/// What this rank computes from now on finds what the operation received.
void LinkTransport::deliver(End& end, int64_t operation, const Wait& what) {
    watch(end.name, [&] {
        if (!end.link->deliver(operation)) wait_until(what, [&] { return end.link->deliver(operation); });
    });
    const int64_t num_ended = end.num_started - static_cast<int64_t>(end.under_way.size());
    if (operation >= num_ended) end.under_way[static_cast<size_t>(operation - num_ended)] = {what, true};
    watch_receives();
}

void LinkTransport::time_parts(bool on) {
    is_timed_ = on;
    for (auto& [link, end] : ends_) end.link->set_timed(on);
}

std::vector<PartSpan> LinkTransport::take_part_spans() {
    std::vector<PartSpan> spans;
    for (auto& [link, end] : ends_) {
        check(end.under_way.empty(), "times are taken when all has ended");
        std::vector<PartSpan> timed = std::exchange(end.timed, {});
        set_times(timed, end.link->take_times());
        spans.insert(spans.end(), timed.begin(), timed.end());
    }
    return spans;
}

void LinkTransport::send(int peer, const Channel& channel, Buffer message) {
    guarded([&] {
        if (!has_link(channel)) return PassingTransport::send(peer, channel, std::move(message));
        const MemoryPart part = message.part();
        if (!part.data) {
            return PassingTransport::send(peer, channel, with_note(message, {0, 0, taken_from(peer)}));
        }
        End* const end = find_end({{rank(), peer}});
        if (is_through_host_ || !end) return send_through_host(end, peer, channel, message, taken_from(peer));
        send_ahead(*end, peer, channel, message, taken_from(peer));
        start(*end, {Wait::Kind::Send, peer, channel, part.num_bytes, 0}, {{}, part}, {0, 0});
    });
}

/// The bytes: the peer prepares for the part while the device still computes it.
void LinkTransport::send_ahead(End& end, int peer, const Channel& channel, const Buffer& message, int64_t taken) {
    PassingTransport::send(peer, channel, with_note(message, {message.part().num_bytes, end.num_started, taken}));
}

void LinkTransport::send_through_host(End* end, int peer, const Channel& channel, const Buffer& message,
                                      int64_t taken) {
    const MemoryPart& part = message.part();
    Buffer noted = with_note(message, {part.num_bytes, kThroughHost, taken}, part.num_bytes);
    maker_.read(part, noted.bytes().subspan(message.bytes().size(), part.num_bytes));
    PassingTransport::send(peer, channel, std::move(noted));
    if (!end) return;
    end->sent_through_host.push_back(part);
    if (end->sent_through_host.size() > kSendsBehind + 1) end->sent_through_host.pop_front();
}

/// For a part that comes through the host. On a full device links will move nothing, and their own memory is a waste.
MemoryPart LinkTransport::make_memory(End* end, size_t num_bytes) {
    if (!end || maker_.is_nearly_full()) return maker_.make_memory(num_bytes);
    std::vector<MemoryPart>& spare = end->spare_memory[num_bytes];
    while (spare.size() <= kSendsBehind) spare.push_back(end->link->make_memory(num_bytes));
    return end->link->make_memory(num_bytes);
}

/// With what came through the host.
void LinkTransport::fill(MemoryPart part, Buffer& message) {
    check(part.num_bytes <= message.bytes().size(), "the part is in the message");
    const size_t num_bytes = message.bytes().size() - part.num_bytes;
    maker_.write(part, message.bytes().subspan(num_bytes));
    message.resize(num_bytes);
    message.set_part(std::move(part));
}

void LinkTransport::post_receive(int peer, const Channel& channel, size_t capacity_bytes) {
    const bool has_note = has_link(channel) && capacity_bytes != kAnySize;
    PassingTransport::post_receive(peer, channel, capacity_bytes + (has_note ? sizeof(PartNote) : 0));
}

void LinkTransport::exchange(Exchange messages) {
    guarded([&] { start_exchange(messages); });
}

void LinkTransport::start_exchange(const Exchange& messages) {
    const auto& [ranks, channel, sent, expected] = messages;
    End& end = end_of(link_of(ranks, channel));
    Untaken untaken{&end, is_through_host_ ? kThroughHost : end.num_started, {}};
    const size_t own = place_of(rank(), ranks);
    check(!sent[own] && expected[own].num_bytes == 0, "a rank sends itself nothing");
    const int any_peer = ranks[own == 0 ? 1 : 0];
    Wait what{Wait::Kind::Receive, any_peer, channel, 0, 0};
    std::vector<MemoryPart> sent_parts(ranks.size());
    std::vector<size_t> received_bytes(ranks.size());
    for (size_t i = 0; i < ranks.size(); ++i) {
        if (expected[i].num_bytes == 0) continue;
        const size_t part_bytes = expected[i].part_bytes;
        PassingTransport::post_receive(ranks[i], channel,
                                       expected[i].num_bytes + (is_through_host_ ? part_bytes : 0) + sizeof(PartNote));
        received_bytes[i] = part_bytes;
        what.num_bytes += part_bytes;
    }
    for (size_t i = 0; i < ranks.size(); ++i) {
        if (!sent[i]) continue;
        sent_parts[i] = sent[i].part();
        if (is_through_host_) {
            send_through_host(&end, ranks[i], channel, sent[i], 0);
        } else {
            send_ahead(end, ranks[i], channel, sent[i], 0);
        }
    }
    std::vector<MemoryPart> received(ranks.size());
    if (!is_through_host_) received = start(end, what, std::move(sent_parts), received_bytes);
    for (size_t i = 0; is_through_host_ && i < ranks.size(); ++i) {
        if (received_bytes[i] > 0) received[i] = make_memory(&end, received_bytes[i]);
    }
    for (size_t i = 0; i < ranks.size(); ++i) {
        if (expected[i].num_bytes > 0) untaken.parts.emplace(ranks[i], received[i]);
    }
    if (untaken.parts.empty()) return;
    const bool is_new = exchanges_.emplace(std::pair(channel.edge, channel.microbatch), std::move(untaken)).second;
    check(is_new, "what an exchange brought is taken before the next of its name");
}

Buffer LinkTransport::receive(int peer, const Channel& channel) {
    Buffer message;
    guarded([&] {
        message = PassingTransport::receive(peer, channel);
        const bool is_of_replicas = channel.direction == Direction::Replicas;
        if (is_of_replicas && exchanges_.contains({channel.edge, channel.microbatch})) {
            take_exchanged(peer, channel, message);
        } else if (has_link(channel)) {
            take_linked(peer, channel, message);
        }
    });
    return message;
}

void LinkTransport::take_linked(int peer, const Channel& channel, Buffer& message) {
    const PartNote note = take_note(message);
    finish_taken(peer, note.taken);
    if (note.num_bytes == 0) return;
    const Link link{{peer, rank()}};
    const Wait what{Wait::Kind::Receive, peer, channel, note.num_bytes, 0};
    if (note.number == kThroughHost) {
        const Watchdog::Phase taking = begin_device_wait(what);  // as in start()
        return fill(make_memory(find_end(link), note.num_bytes), message);
    }
    End& end = end_of(link);
    check_number(end.name, channel, note.number, end.num_started);
    message.set_part(start(end, what, {{}, {}}, {note.num_bytes, 0})[0]);
    deliver(end, end.num_started - 1, what);
}

/// The device waits when all ranks have said that they are there, and not for the first of them.
void LinkTransport::take_exchanged(int peer, const Channel& channel, Buffer& message) {
    const auto found = exchanges_.find({channel.edge, channel.microbatch});
    Untaken& untaken = found->second;
    const PartNote note = take_note(message);
    check_number(untaken.end->name, channel, note.number, untaken.operation);
    MemoryPart part = std::move(untaken.parts.at(peer));
    if (note.num_bytes != part.num_bytes) {
        throw Error(ErrorKind::RanksDisagree, to_text(channel) + " from rank " + std::to_string(peer) +
                                                  " has another size than it must have (got " +
                                                  std::to_string(note.num_bytes) + " bytes, expected " +
                                                  std::to_string(part.num_bytes) + ")");
    }
    untaken.parts.erase(peer);
    const bool is_through_host = untaken.operation == kThroughHost;
    if (untaken.parts.empty()) {
        const Wait what{Wait::Kind::Receive, peer, channel, part.num_bytes, 0};
        if (!is_through_host) deliver(*untaken.end, untaken.operation, what);
        exchanges_.erase(found);
    }
    if (is_through_host && part.num_bytes > 0) return fill(std::move(part), message);
    message.set_part(std::move(part));
}

/// A step's messages would else stay in memory until its end.
void LinkTransport::let_go(End& end) {
    if (end.under_way.empty()) return;
    watch(end.name, [&] {
        const int64_t num_left = end.num_started - end.link->num_done();
        while (static_cast<int64_t>(end.under_way.size()) > num_left) end.under_way.pop_front();
    });
}

/// A device waits for what was delivered to it, and this rank may wait for it in any call of the device's library,
/// where no deadline is. Another send that does not end keeps nothing from computing.
void LinkTransport::watch_receives() {
    for (const auto& [link, end] : ends_) {
        const auto waits = std::find_if(end.under_way.begin(), end.under_way.end(),
                                        [](const Operation& operation) { return operation.device_waits; });
        if (waits == end.under_way.end()) continue;
        const int64_t num_ended = end.num_started - static_cast<int64_t>(end.under_way.size());
        const std::pair first(&end, num_ended + (waits - end.under_way.begin()));
        if (std::exchange(watched_operation_, first) != first) watched_ = begin_device_wait(waits->what);
        return;
    }
    watched_.end();
    watched_operation_ = {};
}

/// But some of those calls wait for all that the device does, sends too. Who is to take them may be late for long, so
/// the time is that since this rank was here.
void LinkTransport::watch_absence() {
    for (const auto& [link, end] : ends_) {
        if (end.under_way.empty()) continue;
        absence_ = begin_device_wait(end.under_way.front().what);
        return;
    }
}

int64_t LinkTransport::taken_from(int peer) {
    const End* const end = find_end({{peer, rank()}});
    return end ? end->num_started : 0;
}

/// Both ends of these operations were given them, and all that their devices do first: they end.
void LinkTransport::finish_taken(int peer, int64_t taken) {
    End* const end = find_end({{rank(), peer}});
    if (end) finish(*end, taken - kSendsBehind);
}

/// Waits until so many operations of the link have ended.
void LinkTransport::finish(End& end, int64_t number) {
    check(number <= end.num_started, "only what was started ends");
    const auto num_ended = [&] { return end.num_started - static_cast<int64_t>(end.under_way.size()); };
    while (num_ended() < number) {
        const Wait first = end.under_way.front().what;
        watch(end.name, [&] { wait_until(first, [&] { return end.link->num_done() > num_ended(); }); });
        let_go(end);
    }
    watch_receives();
}

void LinkTransport::finish_sends() {
    guarded([&] {
        PassingTransport::finish_sends();
        for (auto& [link, end] : ends_) {
            finish(end, end.num_started);
            end.sent_through_host.clear();
            end.spare_memory.clear();
        }
    });
}

void LinkTransport::give_up(const std::exception& error) noexcept {
    const auto* known = dynamic_cast<const Error*>(&error);
    abort(error.what(), kAbortSeconds, exit_code(known ? known->kind() : ErrorKind::Bug));
}

void LinkTransport::abort(const std::string& why, double seconds, int code) noexcept {
    if (std::exchange(is_aborted_, true)) return;
    end_ = begin_end(why, seconds, code);
    maker_.at_once([this] {
        for (auto& [link, end] : ends_) {
            if (end.link) end.link->abort();
        }
    });
}

}  // namespace vpp
