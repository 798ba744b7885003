#include "schedule/message_order.hpp"

#include <algorithm>
#include <limits>
#include <tuple>
#include <unordered_map>

#include "schedule/messages.hpp"
#include "schedule/replay.hpp"
#include "schedule/simulator.hpp"

namespace vpp {

namespace {

/// A RECV to be placed: in front of the action that stands at `place`, in the order in which it was sent.
struct Receive {
    size_t place = 0;
    size_t channel_order = 0;
    Action action;
};

/// For every message the place of its SEND among those of its rank.
std::vector<size_t> places_of_sends(const Schedule& lowered, const MessageNumbers& number) {
    std::vector<size_t> places(number.size(), 0);
    for (const std::vector<Action>& list : lowered.actions) {
        for (size_t index = 0; index < list.size(); ++index) {
            if (is_send(list[index].kind)) places[number(list[index])] = index;
        }
    }
    return places;
}

/// Moves the receives of one channel to the front where a later message is needed first.
void keep_order(std::vector<Receive*>& channel) {
    std::sort(channel.begin(), channel.end(),
              [](const Receive* a, const Receive* b) { return a->channel_order < b->channel_order; });
    size_t latest = std::numeric_limits<size_t>::max();
    for (size_t k = channel.size(); k-- > 0;) {
        latest = std::min(latest, channel[k]->place);
        channel[k]->place = latest;
    }
}

std::vector<Action> order_list(const std::vector<Action>& list, int rank, int num_ranks, const MessageNumbers& number,
                               const std::vector<size_t>& sent_at) {
    std::vector<Receive> receives;
    for (size_t index = 0; index < list.size(); ++index) {
        if (is_receive(list[index].kind)) receives.push_back({index, sent_at[number(list[index])], list[index]});
    }
    std::unordered_map<size_t, std::vector<Receive*>> channels;
    for (Receive& receive : receives) {
        channels[channel_number(receive.action, rank, num_ranks)].push_back(&receive);
    }
    for (auto& [channel, its_receives] : channels) keep_order(its_receives);
    std::stable_sort(receives.begin(), receives.end(), [](const Receive& a, const Receive& b) {
        return std::tie(a.place, a.action.peer, a.channel_order) < std::tie(b.place, b.action.peer, b.channel_order);
    });
    std::vector<Action> ordered;
    ordered.reserve(list.size());
    size_t next = 0;
    for (size_t index = 0; index < list.size(); ++index) {
        for (; next < receives.size() && receives[next].place == index; ++next) {
            ordered.push_back(receives[next].action);
        }
        if (!is_receive(list[index].kind)) ordered.push_back(list[index]);
    }
    return ordered;
}

/// The place of an event in one order of all: when it happens in the simulated run; then what the run did first; then
/// the second half of a pair; then the messages of an action in the order of its list.
using Moment = std::tuple<Ticks, size_t, size_t>;

class GlobalOrder {
  public:
    GlobalOrder(const Schedule& lowered, const ScheduleCosts& costs)
        : lowered_(lowered), simulation_(simulate(lowered, costs)), number_(lowered), sent_(number_.size()) {
        for (const std::vector<Action>& list : lowered.actions) visits_.emplace_back(list.size(), 0);
        size_t count = 0;
        replay(lowered, [&](int rank, size_t index) { visits_[static_cast<size_t>(rank)][index] = count++; });
        moments_.resize(lowered.actions.size());
        for (size_t rank = 0; rank < lowered.actions.size(); ++rank) find_moments(rank);
    }

    std::vector<Action> list(size_t rank) const {
        std::vector<std::pair<Moment, Action>> events;
        for (size_t index = 0; index < lowered_.actions[rank].size(); ++index) {
            const Action& action = lowered_.actions[rank][index];
            events.emplace_back(is_receive(action.kind) ? sent_[number_(action)] : moments_[rank][index], action);
        }
        std::stable_sort(events.begin(), events.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        std::vector<Action> ordered;
        for (const auto& [moment, action] : events) ordered.push_back(action);
        return ordered;
    }

  private:
    void find_moments(size_t rank) {
        const std::vector<Action>& list = lowered_.actions[rank];
        Moment last{0, 0, 0};  // of the computing action or transfer before
        for (size_t index = 0; index < list.size(); ++index) {
            const ActionTime& time = simulation_.times[rank][index];
            if (is_send(list[index].kind)) {
                last = {time.start, std::get<1>(last), std::get<2>(last) + 1};
                sent_[number_(list[index])] = last;
            } else if (!is_receive(list[index].kind)) {
                const bool ends_pair = index > 0 && list[index - 1].paired;
                last = ends_pair ? Moment{std::get<0>(last), std::get<1>(last), 1}
                                 : Moment{time.start, visits_[rank][index], 0};
            }
            moments_[rank].push_back(last);
        }
    }

    const Schedule& lowered_;
    const Simulation simulation_;
    const MessageNumbers number_;
    std::vector<std::vector<size_t>> visits_;   ///< beside the lists: the order of one run
    std::vector<std::vector<Moment>> moments_;  ///< beside the lists
    std::vector<Moment> sent_;                  ///< by message
};

}  // namespace

Schedule order_channels(Schedule lowered) {
    const MessageNumbers number(lowered);
    const std::vector<size_t> sent_at = places_of_sends(lowered, number);
    for (int rank = 0; rank < lowered.num_ranks; ++rank) {
        std::vector<Action>& list = lowered.actions[static_cast<size_t>(rank)];
        list = order_list(list, rank, lowered.num_ranks, number, sent_at);
    }
    return lowered;
}

Schedule order_globally(Schedule lowered, const ScheduleCosts& costs) {
    const GlobalOrder order(lowered, costs);
    ActionLists lists;
    for (size_t rank = 0; rank < lowered.actions.size(); ++rank) lists.push_back(order.list(rank));
    lowered.actions = std::move(lists);
    return lowered;
}

}  // namespace vpp
