#include "comm/link_transport.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <tuple>

#include "base/error.hpp"
#include "comm/lanes.hpp"

namespace vpp {

namespace {

/// Behind the bytes of every message that may have a device part.
struct PartNote {
    uint64_t num_bytes = 0;  ///< 0: it has none
    int64_t number = 0;      ///< of its link, from 0
};

constexpr size_t kIdBytes = 4096;  // more than any library's names have

std::string link_text(const Link& link) {
    std::string text = link.kind == Direction::Forward ? "forward link" : "backward link";
    if (link.kind == Direction::Replicas) text = "link " + std::to_string(link.content) + " between replicas";
    return text + " from rank " + std::to_string(link.from) + " to rank " + std::to_string(link.to);
}

Buffer with_note(const Buffer& message, const PartNote& note) {
    const std::span<const std::byte> bytes = message.bytes();
    Buffer noted(bytes.size() + sizeof(note));
    std::copy(bytes.begin(), bytes.end(), noted.bytes().begin());
    std::memcpy(noted.bytes().data() + bytes.size(), &note, sizeof(note));
    return noted;
}

PartNote take_note(Buffer& message) {
    PartNote note;
    check(message.bytes().size() >= sizeof(note), "a message ends with the note of its device part");
    const size_t num_bytes = message.bytes().size() - sizeof(note);
    std::memcpy(&note, message.bytes().data() + num_bytes, sizeof(note));
    message.resize(num_bytes);
    return note;
}

}  // namespace

LinkTransport::LinkTransport(Transport& bytes, const std::vector<Link>& links, LinkMaker& maker,
                             double patience_seconds)
    : PassingTransport(bytes), patience_seconds_(patience_seconds) {
    try {
        const std::vector<Link> order = connect_order(links);
        for (size_t i = 0; i < order.size(); ++i) {
            if (order[i].from != rank() && order[i].to != rank()) continue;
            set_position("connecting the " + link_text(order[i]));
            connect(order[i], static_cast<int>(i), maker);
        }
    } catch (...) {
        abort();
        throw;
    }
}

LinkTransport::~LinkTransport() {
    const bool is_idle =
        std::all_of(ends_.begin(), ends_.end(), [](const auto& end) { return end.second.under_way.empty(); });
    if (!is_idle) abort();
}

template <typename Use>
void LinkTransport::watch(const Link& link, const Use& use) const {
    try {
        use();
    } catch (const LinkFailure& failure) {
        constexpr double kYieldSeconds = 0.4;  // of two ranks that know no more the lower one speaks
        const double yield_seconds = rank() == std::max(link.from, link.to) ? kYieldSeconds : 0;
        std::this_thread::sleep_for(std::chrono::duration<double>(patience_seconds_ + yield_seconds));
        throw Error(ErrorKind::RankLost, "the " + link_text(link) + " has failed: " + failure.what());
    }
}

void LinkTransport::connect(const Link& link, int number, LinkMaker& maker) {
    const bool sends = link.from == rank();
    const int peer = sends ? link.to : link.from;
    const Channel channel{number, 0, Direction::Control};
    Bytes id;
    if (sends) {
        id = maker.make_id();
        Buffer message(id.size());
        std::copy(id.begin(), id.end(), message.bytes().begin());
        PassingTransport::send(peer, channel, std::move(message));
    } else {
        PassingTransport::post_receive(peer, channel, kIdBytes);
        const Buffer message = PassingTransport::receive(peer, channel);
        id.assign(message.bytes().begin(), message.bytes().end());
    }
    End& end = ends_[link];
    end.name = link;
    const Wait what{sends ? Wait::Kind::Send : Wait::Kind::Receive, peer, channel, 1, 0};
    watch(link, [&] {
        end.link = maker.connect(id, sends);
        wait_until(what, [&] { return end.link->is_ready(); });
    });
    start(end, what, sends ? maker.make_memory(1) : MemoryPart{});
    finish(end);
    PassingTransport::finish_sends();
}

LinkTransport::End& LinkTransport::end_of(const Link& link) {
    const auto end = ends_.find(link);
    check(end != ends_.end(), "there is no " + link_text(link));
    return end->second;
}

/// A send when there is memory to send, else a receive; what it received.
MemoryPart LinkTransport::start(End& end, const Wait& what, MemoryPart sent) {
    try {
        for (auto& [link, other] : ends_) let_go(other);
        MemoryPart received;
        watch(end.name, [&] {
            if (sent.data) {
                end.link->send(std::move(sent));
            } else {
                received = end.link->receive(what.num_bytes);
            }
            end.under_way.push_back(what);
            if (is_timed_) end.timed.push_back({what.peer, what.channel, what.kind == Wait::Kind::Send, 0, 0});
            ++end.num_started;
            if (!end.link->is_ready()) wait_until(what, [&] { return end.link->is_ready(); });
        });
        watch_receives();
        return received;
    } catch (...) {
        abort();
        throw;
    }
}

void LinkTransport::time_parts(bool on) {
    is_timed_ = on;
    for (auto& [link, end] : ends_) end.link->set_timed(on);
}

std::vector<PartSpan> LinkTransport::take_part_spans() {
    std::vector<PartSpan> spans;
    for (auto& [link, end] : ends_) {
        check(end.under_way.empty(), "times are taken when all has ended");
        const auto times = end.link->take_times();
        check(times.size() == end.timed.size(), "a link has the times of its operations");
        for (size_t i = 0; i < times.size(); ++i) {
            std::tie(end.timed[i].begin, end.timed[i].end) = times[i];
            spans.push_back(end.timed[i]);
        }
        end.timed.clear();
    }
    return spans;
}

void LinkTransport::send(int peer, const Channel& channel, Buffer message) {
    const std::optional<Link> link = link_of(rank(), peer, channel);
    if (!link) return PassingTransport::send(peer, channel, std::move(message));
    const MemoryPart part = message.part();
    if (!part.data) return PassingTransport::send(peer, channel, with_note(message, {}));
    End& end = end_of(*link);
    // The bytes first: the peer prepares for what comes while the device still computes it.
    PassingTransport::send(peer, channel, with_note(message, {part.num_bytes, end.num_started}));
    start(end, {Wait::Kind::Send, peer, channel, part.num_bytes, 0}, part);
}

void LinkTransport::post_receive(int peer, const Channel& channel, size_t capacity_bytes) {
    PassingTransport::post_receive(peer, channel,
                                   capacity_bytes + (link_of(peer, rank(), channel) ? sizeof(PartNote) : 0));
}

Buffer LinkTransport::receive(int peer, const Channel& channel) {
    Buffer message = PassingTransport::receive(peer, channel);
    const std::optional<Link> link = link_of(peer, rank(), channel);
    if (!link) return message;
    const PartNote note = take_note(message);
    if (note.num_bytes == 0) return message;
    End& end = end_of(*link);
    check(note.number == end.num_started, to_text(channel) + " was sent as message " + std::to_string(note.number) +
                                              " of the " + link_text(*link) + " and is received as message " +
                                              std::to_string(end.num_started));
    message.set_part(start(end, {Wait::Kind::Receive, peer, channel, note.num_bytes, 0}, {}));
    return message;
}

/// A step's messages would else stay in memory until its end.
void LinkTransport::let_go(End& end) {
    if (end.under_way.empty()) return;
    watch(end.name, [&] {
        const int64_t num_left = end.num_started - end.link->num_done();
        while (static_cast<int64_t>(end.under_way.size()) > num_left) end.under_way.pop_front();
    });
}

/// A device waits for what it was given to receive, and this rank may wait for it in any call of the device's library,
/// where no deadline is. A send that does not end keeps nothing from computing.
void LinkTransport::watch_receives() {
    watched_.end();
    for (const auto& [link, end] : ends_) {
        if (end.under_way.empty() || link.to != rank()) continue;
        watched_ = begin_device_wait(end.under_way.front());
        return;
    }
}

void LinkTransport::finish(End& end) {
    while (!end.under_way.empty()) {
        const auto num_finished = end.num_started - static_cast<int64_t>(end.under_way.size());
        const Wait first = end.under_way.front();
        watch(end.name, [&] { wait_until(first, [&] { return end.link->num_done() > num_finished; }); });
        let_go(end);
    }
    watch_receives();
}

void LinkTransport::finish_sends() {
    try {
        PassingTransport::finish_sends();
        for (auto& [link, end] : ends_) finish(end);
    } catch (...) {
        abort();
        throw;
    }
}

void LinkTransport::abort() noexcept {
    if (std::exchange(is_aborted_, true)) return;
    for (auto& [link, end] : ends_) {
        if (end.link) end.link->abort();
    }
}

}  // namespace vpp
