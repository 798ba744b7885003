#include "schedule/held_sends.hpp"

#include <algorithm>
#include <map>
#include <queue>
#include <utility>

#include "schedule/messages.hpp"
#include "schedule/replay.hpp"

namespace vpp {

namespace {

struct HeldMessage {
    size_t sent_after = 0;   ///< actions of its sender
    size_t taken_after = 0;  ///< actions of the peer
    int64_t bytes = 0;
};

/// For a queue whose front is the message that is taken first.
struct TakenLater {
    bool operator()(const HeldMessage& a, const HeldMessage& b) const { return a.taken_after > b.taken_after; }
};

/// For a queue whose front is the oldest message.
struct SentLater {
    bool operator()(const HeldMessage& a, const HeldMessage& b) const { return a.sent_after > b.sent_after; }
};

template <typename Later>
using HeldQueue = std::priority_queue<HeldMessage, std::vector<HeldMessage>, Later>;

/// What a rank holds of one link. Messages may be taken in another order than they were sent.
struct HeldOfLink {
    size_t peer = 0;
    HeldQueue<TakenLater> waiting;  ///< not known to be taken
    HeldQueue<SentLater> taken;
};

/// By message: after how many actions of its receiver it has a buffer there.
std::vector<size_t> taken_after(const Schedule& lowered, const MessageNumbers& number, int receives_ahead) {
    const auto ahead = static_cast<size_t>(receives_ahead);
    std::vector<size_t> taken(number.size(), 0);
    for (const std::vector<Action>& list : lowered.actions) {
        std::vector<size_t> receives;
        for (size_t k = 0; k < list.size(); ++k) {
            if (!is_receive(list[k].kind)) continue;
            receives.push_back(k + 1);
            taken[number(list[k])] = receives.size() > ahead ? receives[receives.size() - 1 - ahead] : 0;
        }
    }
    return taken;
}

class HeldSends {
  public:
    HeldSends(const Schedule& lowered, const MessageBuffers& buffers, const std::function<int64_t(int)>& bytes_of_edge)
        : lowered_(lowered),
          sends_behind_(static_cast<size_t>(buffers.sends_behind.value())),
          bytes_of_edge_(bytes_of_edge),
          number_(lowered),
          taken_after_(taken_after(lowered, number_, buffers.receives_ahead)),
          sent_after_(number_.size(), 0),
          known_(lowered.actions.size()),
          links_(lowered.actions.size()),
          held_bytes_(lowered.actions.size(), 0),
          during_(lowered.actions.size()) {}

    std::vector<std::vector<int64_t>> run() {
        replay(lowered_, [this](int rank, size_t index) { visit(static_cast<size_t>(rank), index); });
        return std::move(during_);
    }

  private:
    void visit(size_t rank, size_t index) {
        const Action& action = lowered_.actions[rank][index];
        const auto peer = static_cast<size_t>(action.peer);
        if (is_transfer(action.kind)) let_go(rank);
        if (is_receive(action.kind)) known_[rank][peer] = std::max(known_[rank][peer], sent_after_[number_(action)]);
        if (is_send(action.kind)) hold(rank, index, action);
        during_[rank].push_back(held_bytes_[rank]);
    }

    void hold(size_t rank, size_t index, const Action& send) {
        const size_t number = number_(send);
        HeldOfLink& link = links_[rank][channel_number(send, static_cast<int>(rank), lowered_.num_ranks)];
        link.peer = static_cast<size_t>(send.peer);
        const int64_t bytes = bytes_of_edge_(send.edge);
        link.waiting.push({index, taken_after_[number], bytes});
        held_bytes_[rank] += bytes;
        sent_after_[number] = index;
    }

    /// Of what is known to be taken the last messages of each link stay. What is known only grows, so a message that is
    /// let go is not looked at again.
    void let_go(size_t rank) {
        for (auto& [number, link] : links_[rank]) {
            while (!link.waiting.empty() && link.waiting.top().taken_after <= known_[rank][link.peer]) {
                link.taken.push(link.waiting.top());
                link.waiting.pop();
            }
            for (; link.taken.size() > sends_behind_; link.taken.pop()) held_bytes_[rank] -= link.taken.top().bytes;
        }
    }

    const Schedule& lowered_;
    const size_t sends_behind_;
    const std::function<int64_t(int)>& bytes_of_edge_;
    const MessageNumbers number_;
    const std::vector<size_t> taken_after_;        ///< by message
    std::vector<size_t> sent_after_;               ///< by message: how many actions of its sender
    std::vector<std::map<size_t, size_t>> known_;  ///< by rank and peer: so many of its actions are over for certain
    std::vector<std::map<size_t, HeldOfLink>> links_;  ///< by rank and link
    std::vector<int64_t> held_bytes_;                  ///< by rank
    std::vector<std::vector<int64_t>> during_;         ///< by rank and action
};

}  // namespace

std::vector<std::vector<int64_t>> held_sends(const Schedule& lowered, const MessageBuffers& buffers,
                                             const std::function<int64_t(int edge)>& bytes_of_edge) {
    return HeldSends(lowered, buffers, bytes_of_edge).run();
}

}  // namespace vpp
