#pragma once
// Pairs messages with the receives posted for them. A lane is one channel from one peer; in a lane the n-th message
// belongs to the n-th posted receive, whichever of the two comes first. Lanes know nothing of each other's order.
#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "comm/transport.hpp"

namespace vpp::detail {

struct LaneKey {
    int peer = 0;
    Channel channel;
};

struct LaneKeyLess {
    bool operator()(const LaneKey& a, const LaneKey& b) const {
        return std::tie(a.peer, a.channel.direction, a.channel.edge, a.channel.microbatch) <
               std::tie(b.peer, b.channel.direction, b.channel.edge, b.channel.microbatch);
    }
};

/// Throws Error{RanksDisagree} when a message is longer than its receive allows.
inline void check_capacity(int rank, const LaneKey& key, size_t num_bytes, size_t capacity_bytes) {
    if (num_bytes <= capacity_bytes) return;
    throw Error(ErrorKind::RanksDisagree, "rank " + std::to_string(key.peer) + " sent " + to_text(key.channel) +
                                              " with a size that rank " + std::to_string(rank) +
                                              " does not expect (got " + std::to_string(num_bytes) +
                                              " bytes, expected at most " + std::to_string(capacity_bytes) + ")");
}

/// `Arrival` is what a transport keeps of a message that came or is coming.
template <typename Arrival>
class Lanes {
  public:
    using ArrivalPtr = std::shared_ptr<Arrival>;

    /// A receive and, when its message is known already, the message.
    struct Match {
        ArrivalPtr arrival;
        size_t capacity_bytes = 0;
    };

    /// Notes a receive; its message when that came before.
    Match post(const LaneKey& key, size_t capacity_bytes) {
        Lane& lane = lanes_[key];
        lane.capacities.push_back(capacity_bytes);
        const size_t index = lane.capacities.size() - 1;
        return {index < lane.arrivals.size() ? lane.arrivals[index] : nullptr, capacity_bytes};
    }

    /// Notes a message; `arrival` of the result is empty when no receive was posted for it yet.
    Match add(const LaneKey& key, ArrivalPtr arrival) {
        Lane& lane = lanes_[key];
        lane.arrivals.push_back(arrival);
        const size_t index = lane.arrivals.size() - 1;
        if (index >= lane.capacities.size()) return {};
        return {std::move(arrival), lane.capacities[index]};
    }

    /// The next message of a posted lane, empty while it has not been announced.
    /// Throws: Error{Bug} when nothing is posted.
    Match front(const LaneKey& key) const {
        const auto lane = lanes_.find(key);
        check(lane != lanes_.end() && !lane->second.capacities.empty(),
              "receive of " + to_text(key.channel) + " from rank " + std::to_string(key.peer) + " was never posted");
        const Lane& found = lane->second;
        return {found.arrivals.empty() ? nullptr : found.arrivals.front(), found.capacities.front()};
    }

    /// Forgets the message that front() gave.
    void pop(const LaneKey& key) {
        const auto lane = lanes_.find(key);
        lane->second.arrivals.pop_front();
        lane->second.capacities.pop_front();
        if (lane->second.arrivals.empty() && lane->second.capacities.empty()) lanes_.erase(lane);
    }

    /// Up to `limit` channels from `peer` that hold a message nobody posted a receive for.
    std::vector<Channel> unposted(int peer, size_t limit) const {
        std::vector<Channel> channels;
        for (auto lane = lanes_.lower_bound(first_key(peer)); lane != lanes_.end() && lane->first.peer == peer;
             ++lane) {
            if (channels.size() == limit) break;
            if (lane->second.arrivals.size() > lane->second.capacities.size()) channels.push_back(lane->first.channel);
        }
        return channels;
    }

  private:
    struct Lane {
        std::deque<size_t> capacities;
        std::deque<ArrivalPtr> arrivals;
    };
    static LaneKey first_key(int peer) {
        constexpr int kLowest = -2147483647 - 1;
        return {peer, {kLowest, kLowest, Direction::Forward}};
    }
    std::map<LaneKey, Lane, LaneKeyLess> lanes_;
};

}  // namespace vpp::detail
