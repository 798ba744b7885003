#include "comm/clock_exchange.hpp"

#include <algorithm>

#include "base/bytes.hpp"

namespace vpp {

namespace {

constexpr Channel kQuestion{kClockQuestion, 0, Direction::Control};
constexpr Channel kAnswer{kClockAnswer, 0, Direction::Control};

void send_time(Transport& transport, int peer, const Channel& channel, int64_t time) {
    Buffer message(sizeof time);
    std::ranges::copy(bytes_of(time), message.bytes().begin());
    transport.send(peer, channel, std::move(message));
}

int64_t receive_time(Transport& transport, int peer, const Channel& channel) {
    return ByteReader(transport.receive(peer, channel).bytes()).get<int64_t>();
}

ClockOffset ask(Transport& transport, int peer, const std::function<int64_t()>& clock, int num_pings) {
    std::vector<ClockPing> pings;
    for (int i = 0; i < num_pings; ++i) {
        transport.post_receive(peer, kAnswer, sizeof(int64_t));
        ClockPing& ping = pings.emplace_back();
        ping.asked = clock();
        send_time(transport, peer, kQuestion, ping.asked);
        ping.noted = receive_time(transport, peer, kAnswer);
        ping.answered = clock();
    }
    return estimate_offset(pings);
}

/// The next question is awaited before this one is answered, so that none comes to a rank that is not ready.
void answer(Transport& transport, const std::function<int64_t()>& clock, int num_pings) {
    transport.post_receive(0, kQuestion, sizeof(int64_t));
    for (int i = 0; i < num_pings; ++i) {
        receive_time(transport, 0, kQuestion);
        const int64_t noted = clock();
        if (i + 1 < num_pings) transport.post_receive(0, kQuestion, sizeof(int64_t));
        send_time(transport, 0, kAnswer, noted);
    }
}

}  // namespace

std::vector<ClockOffset> compare_clocks(Transport& transport, const std::function<int64_t()>& clock, int num_pings) {
    transport.set_position("comparing the clocks of the ranks");
    std::vector<ClockOffset> offsets;
    if (transport.rank() > 0) {
        answer(transport, clock, num_pings);
    } else {
        offsets.push_back({clock(), 0, 0});
        for (int peer = 1; peer < transport.size(); ++peer) offsets.push_back(ask(transport, peer, clock, num_pings));
    }
    transport.finish_sends();
    return offsets;
}

}  // namespace vpp
