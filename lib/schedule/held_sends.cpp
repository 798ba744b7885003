#include "schedule/held_sends.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "schedule/messages.hpp"
#include "schedule/replay.hpp"

namespace vpp {

namespace {

struct HeldMessage {
    size_t link = 0;
    size_t peer = 0;
    size_t taken_after = 0;  ///< actions of the peer
    int64_t bytes = 0;
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
          sends_behind_(buffers.sends_behind.value()),
          bytes_of_edge_(bytes_of_edge),
          number_(lowered),
          taken_after_(taken_after(lowered, number_, buffers.receives_ahead)),
          sent_after_(number_.size(), 0),
          known_(lowered.actions.size()),
          held_(lowered.actions.size()),
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
        if (is_send(action.kind)) {
            const size_t link = channel_number(action, static_cast<int>(rank), lowered_.num_ranks);
            held_[rank].push_back({link, peer, taken_after_[number_(action)], bytes_of_edge_(action.edge)});
            sent_after_[number_(action)] = index;
        }
        int64_t bytes = 0;
        for (const HeldMessage& message : held_[rank]) bytes += message.bytes;
        during_[rank].push_back(bytes);
    }

    /// Of what is known to be taken the last messages of each link stay.
    void let_go(size_t rank) {
        std::vector<HeldMessage> stay;
        std::map<size_t, int> num_taken;  // by link
        for (auto message = held_[rank].rbegin(); message != held_[rank].rend(); ++message) {
            const bool is_taken = known_[rank][message->peer] >= message->taken_after;
            if (!is_taken || ++num_taken[message->link] <= sends_behind_) stay.push_back(*message);
        }
        std::reverse(stay.begin(), stay.end());
        held_[rank] = std::move(stay);
    }

    const Schedule& lowered_;
    const int sends_behind_;
    const std::function<int64_t(int)>& bytes_of_edge_;
    const MessageNumbers number_;
    const std::vector<size_t> taken_after_;        ///< by message
    std::vector<size_t> sent_after_;               ///< by message: how many actions of its sender
    std::vector<std::map<size_t, size_t>> known_;  ///< by rank and peer: so many of its actions are over for certain
    std::vector<std::vector<HeldMessage>> held_;   ///< by rank, in the order of the sends
    std::vector<std::vector<int64_t>> during_;     ///< by rank and action
};

}  // namespace

std::vector<std::vector<int64_t>> held_sends(const Schedule& lowered, const MessageBuffers& buffers,
                                             const std::function<int64_t(int edge)>& bytes_of_edge) {
    return HeldSends(lowered, buffers, bytes_of_edge).run();
}

}  // namespace vpp
