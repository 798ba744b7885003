#include "schedule/critical_path.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "schedule/messages.hpp"

namespace vpp {

namespace {

/// A place in the lists.
struct Place {
    size_t rank = 0;
    size_t index = 0;
};

/// Walks from the last action back to time 0, always to what the action in hand had to wait for.
class BackwardWalk {
  public:
    BackwardWalk(const Schedule& lowered, const Simulation& simulation, const ScheduleCosts& costs)
        : lowered_(lowered), simulation_(simulation), costs_(costs), number_(lowered), sends_(number_.size()) {
        for (size_t rank = 0; rank < lowered.actions.size(); ++rank) {
            const std::vector<Action>& list = lowered.actions[rank];
            for (size_t index = 0; index < list.size(); ++index) {
                if (is_send(list[index].kind)) sends_[number_(list[index])] = {rank, index};
            }
        }
    }

    std::vector<CriticalStep> run() {
        Place place = last();
        while (step_back(place)) continue;
        std::reverse(path_.begin(), path_.end());
        return std::move(path_);
    }

  private:
    const Action& action(const Place& place) const { return lowered_.actions[place.rank][place.index]; }
    const ActionTime& time(const Place& place) const { return simulation_.times[place.rank][place.index]; }

    /// One behind the last action of the smallest rank that ends last.
    Place last() const {
        for (size_t rank = 0; rank < lowered_.actions.size(); ++rank) {
            const std::vector<ActionTime>& times = simulation_.times[rank];
            if (!times.empty() && times.back().end == simulation_.makespan) return {rank, times.size()};
        }
        check(false, "some rank ends last");
        return {};
    }

    /// From `place` to the action before it, or to the one that this one waited for; false: it is the first.
    bool step_back(Place& place) {
        if (place.index == 0) return false;
        --place.index;
        const Action& here = action(place);
        const Ticks duration = time(place).end - time(place).start;
        if (is_receive(here.kind)) {
            if (duration > 0) go_to_sender(place);
        } else if (is_computing(here.kind) && !ends_pair(place)) {
            add(place, duration);
        }
        return true;
    }

    bool ends_pair(const Place& place) const {
        return place.index > 0 && lowered_.actions[place.rank][place.index - 1].paired;
    }

    void add(const Place& place, Ticks duration) {
        path_.push_back({static_cast<int>(place.rank), place.index, duration});
    }

    /// From a RECV that waited to its SEND; where that message waited for its channel, on through the messages before.
    void go_to_sender(Place& place) {
        const Ticks arrival = time(place).end;
        place = sends_[number_(action(place))];
        Ticks start = arrival - costs_.of_transfer(action(place).edge);
        add(place, arrival - start);
        while (start > time(place).start) {
            const int peer = action(place).peer;
            do {
                check(place.index > 0, "a message waits for one before it");
                --place.index;
            } while (!is_send(action(place).kind) || action(place).peer != peer);
            const Ticks duration = costs_.of_occupied(action(place).edge);
            add(place, duration);
            start -= duration;
        }
    }

    const Schedule& lowered_;
    const Simulation& simulation_;
    const ScheduleCosts& costs_;
    const MessageNumbers number_;
    std::vector<Place> sends_;  ///< by message
    std::vector<CriticalStep> path_;
};

}  // namespace

std::vector<CriticalStep> critical_path(const Schedule& lowered, const Simulation& simulation,
                                        const ScheduleCosts& costs) {
    return BackwardWalk(lowered, simulation, costs).run();
}

CriticalTimes critical_times(const Schedule& lowered, const std::vector<CriticalStep>& path) {
    CriticalTimes times{std::vector<Ticks>(static_cast<size_t>(lowered.num_stages()))};
    for (const CriticalStep& step : path) {
        const Action& action = lowered.actions[static_cast<size_t>(step.rank)][step.index];
        (is_send(action.kind) ? times.of_messages : times.of_stage[static_cast<size_t>(action.stage)]) += step.time;
    }
    return times;
}

}  // namespace vpp
