#include "schedule/deadlock.hpp"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "schedule/messages.hpp"

namespace vpp {

namespace {

constexpr size_t kMostRanksShown = 16;

std::string place_text(const Schedule& lowered, size_t rank, size_t index) {
    const std::vector<Action>& list = lowered.actions[rank];
    return to_text(list[index]) + " (action " + std::to_string(index) + " of " + std::to_string(list.size()) +
           (is_transfer(list[index].kind) ? ", edge " + std::to_string(list[index].edge) : "") + ")";
}

/// The ranks that wait for each other, from the smallest on.
std::vector<size_t> circle_of(const Schedule& lowered, const std::vector<size_t>& done, size_t stuck) {
    const auto waits_for = [&](size_t rank) { return static_cast<size_t>(lowered.actions[rank][done[rank]].peer); };
    std::vector<bool> seen(done.size(), false);
    for (; !seen[stuck]; stuck = waits_for(stuck)) seen[stuck] = true;
    std::vector<size_t> circle{stuck};
    for (size_t rank = waits_for(stuck); rank != stuck; rank = waits_for(rank)) circle.push_back(rank);
    std::rotate(circle.begin(), std::min_element(circle.begin(), circle.end()), circle.end());
    return circle;
}

/// "rank 0 waits at X for Y of rank 1".
std::string wait_text(const Schedule& lowered, const std::vector<size_t>& done, size_t rank) {
    const Action& waiting = lowered.actions[rank][done[rank]];
    const auto peer = static_cast<size_t>(waiting.peer);
    const std::vector<Action>& list = lowered.actions[peer];
    std::string text = "rank " + std::to_string(rank) + " waits at " + place_text(lowered, rank, done[rank]);
    for (size_t index = done[peer]; index < list.size(); ++index) {
        const Action& other = list[index];
        const bool answers = is_transfer(other.kind) && is_send(other.kind) != is_send(waiting.kind) &&
                             message_key(other) == message_key(waiting);
        if (answers) return text + " for " + place_text(lowered, peer, index) + " of rank " + std::to_string(peer);
    }
    return text + ", which never comes";
}

}  // namespace

std::string deadlock_text(const Schedule& lowered, Sends sends) {
    const std::vector<size_t> done = replay(
        lowered, [](int, size_t) {}, sends);
    std::vector<size_t> stuck;
    for (size_t rank = 0; rank < done.size(); ++rank) {
        if (done[rank] < lowered.actions[rank].size()) stuck.push_back(rank);
    }
    if (stuck.empty()) return "";
    const std::vector<size_t> circle = circle_of(lowered, done, stuck.front());
    std::string text = "it never ends";
    if (sends == Sends::Rendezvous) text += " where a send waits for its receive";
    for (size_t k = 0; k < std::min(circle.size(), kMostRanksShown); ++k) {
        text += (k == 0 ? ": " : "; ") + wait_text(lowered, done, circle[k]);
    }
    if (circle.size() > kMostRanksShown) {
        text += "; and so on round a circle of " + std::to_string(circle.size()) + " ranks";
    }
    const size_t others = stuck.size() - circle.size();
    if (others > 0) text += "; " + std::to_string(others) + (others == 1 ? " more rank waits" : " more ranks wait");
    return text + "; change the order of these ranks' actions";
}

std::string crossing_text(const Schedule& lowered) {
    const MessageNumbers number(lowered);
    struct Sent {
        size_t message;
        int rank;
        size_t index;
    };
    struct Channel {
        std::vector<Sent> sent;
        size_t num_received = 0;
    };
    std::unordered_map<size_t, Channel> channels;
    const auto for_each_transfer = [&](auto wanted, auto visit) {
        for (int rank = 0; rank < lowered.num_ranks; ++rank) {
            const std::vector<Action>& list = lowered.actions[static_cast<size_t>(rank)];
            for (size_t index = 0; index < list.size(); ++index) {
                if (wanted(list[index].kind)) visit(rank, index, list[index]);
            }
        }
    };
    for_each_transfer(is_send, [&](int rank, size_t index, const Action& action) {
        channels[channel_number(action, rank, lowered.num_ranks)].sent.push_back({number(action), rank, index});
    });
    std::string crossing;
    for_each_transfer(is_receive, [&](int rank, size_t index, const Action& action) {
        Channel& channel = channels[channel_number(action, rank, lowered.num_ranks)];
        const Sent& sent = channel.sent.at(channel.num_received++);
        if (sent.message == number(action) || !crossing.empty()) return;
        crossing = "messages cross: rank " + std::to_string(rank) + " receives " +
                   place_text(lowered, static_cast<size_t>(rank), index) + " where rank " + std::to_string(sent.rank) +
                   " sends " + place_text(lowered, static_cast<size_t>(sent.rank), sent.index) +
                   "; a channel that keeps the order needs both in the same order";
    });
    return crossing;
}

}  // namespace vpp
