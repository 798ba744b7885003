#include "schedule/replay.hpp"

#include "schedule/messages.hpp"

namespace vpp {

namespace {

constexpr int kNobody = -1, kSent = -2;

/// Ranks run as far as they can, one after the other; who waits is woken by whom it waits for.
class Replay {
  public:
    Replay(const Schedule& lowered, const std::function<void(int, size_t)>& visit)
        : lowered_(lowered),
          visit_(visit),
          number_(lowered),
          states_(number_.size(), kNobody),
          done_(lowered.actions.size(), 0) {
        for (size_t rank = done_.size(); rank-- > 0;) ready_.push_back(rank);
    }

    std::vector<size_t> run(Sends sends) {
        while (!ready_.empty()) {
            const size_t rank = ready_.back();
            ready_.pop_back();
            while (done_[rank] < lowered_.actions[rank].size()) {
                const bool went_on = sends == Sends::Buffered ? step_buffered(rank) : step_rendezvous(rank);
                if (!went_on) break;
            }
        }
        return std::move(done_);
    }

  private:
    const Action& current(size_t rank) const { return lowered_.actions[rank][done_[rank]]; }

    void finish(size_t rank) { visit_(static_cast<int>(rank), done_[rank]++); }

    bool step_buffered(size_t rank) {
        const Action& action = current(rank);
        if (is_receive(action.kind)) {
            int& state = states_[number_(action)];
            if (state != kSent) state = static_cast<int>(rank);
            if (state != kSent) return false;
        }
        finish(rank);
        if (is_send(action.kind)) {
            int& state = states_[number_(action)];
            if (state >= 0) ready_.push_back(static_cast<size_t>(state));
            state = kSent;
        }
        return true;
    }

    /// The second side to arrive does the transfer for both and wakes the first.
    bool step_rendezvous(size_t rank) {
        const Action& action = current(rank);
        if (!is_transfer(action.kind)) {
            finish(rank);
            return true;
        }
        const auto peer = static_cast<size_t>(action.peer);
        if (done_[peer] == lowered_.actions[peer].size()) return false;
        const Action& other = current(peer);
        const bool meet =
            is_transfer(other.kind) && is_send(other.kind) != is_send(action.kind) && number_(other) == number_(action);
        if (!meet) return false;
        finish(is_send(action.kind) ? rank : peer);
        finish(is_send(action.kind) ? peer : rank);
        ready_.push_back(peer);
        return true;
    }

    const Schedule& lowered_;
    const std::function<void(int, size_t)>& visit_;
    const MessageNumbers number_;
    std::vector<int> states_;  ///< by message: kNobody, kSent, or the rank that waits for it
    std::vector<size_t> done_;
    std::vector<size_t> ready_;
};

}  // namespace

uint64_t message_key(const Action& transfer) {
    const uint64_t direction = carries_gradient(transfer.kind) ? 1 : 0;
    return direction << 63 | static_cast<uint64_t>(transfer.edge) << 32 | static_cast<uint64_t>(transfer.microbatch);
}

std::vector<size_t> replay(const Schedule& lowered, const std::function<void(int rank, size_t index)>& visit,
                           Sends sends) {
    return Replay(lowered, visit).run(sends);
}

}  // namespace vpp
