// What a message costs beside computing ranks.
//   mpirun --oversubscribe -np N transport_bench
// exchange: every rank sends to the next, computes, then receives from the one before; ideal is the computing alone,
//           times ranks / cores when ranks exceed cores.
// chain:    one message goes round, every rank computes before it passes it on; ideal is the computing alone.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "comm/collective.hpp"
#include "comm/mpi_session.hpp"
#include "comm/mpi_transport.hpp"

namespace {

using namespace vpp;
using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

volatile double sink = 0;

/// A fixed amount of arithmetic, so that a rank that shares its core takes longer.
void compute(int64_t rounds) {
    double value = 1;
    for (int64_t i = 0; i < rounds; ++i) value = value * 0.999999 + 1e-9;
    sink = value;
}

double rounds_per_millisecond() {
    double best = 0;
    for (int trial = 0; trial < 5; ++trial) {
        constexpr int64_t kRounds = 2000000;
        const auto start = Clock::now();
        compute(kRounds);
        best = std::max(best, static_cast<double>(kRounds) / milliseconds_since(start));
    }
    return best;
}

struct Case {
    size_t num_bytes;
    double compute_ms;
    int repeats;
};

double exchange_ms(Transport& transport, const Case& c, int64_t rounds) {
    const int next = (transport.rank() + 1) % transport.size();
    const int before = (transport.rank() + transport.size() - 1) % transport.size();
    barrier(transport);
    const auto start = Clock::now();
    for (int i = 0; i < c.repeats; ++i) {
        const Channel channel{1, i, Direction::Forward};
        transport.post_receive(before, channel, c.num_bytes);
        transport.send(next, channel, Buffer(c.num_bytes));
        compute(rounds);
        transport.receive(before, channel);
    }
    transport.finish_sends();
    barrier(transport);
    return milliseconds_since(start) / c.repeats;
}

double chain_ms(Transport& transport, const Case& c, int64_t rounds) {
    const int next = (transport.rank() + 1) % transport.size();
    const int before = (transport.rank() + transport.size() - 1) % transport.size();
    barrier(transport);
    const auto start = Clock::now();
    for (int i = 0; i < c.repeats; ++i) {
        const Channel channel{2, i, Direction::Forward};
        transport.post_receive(before, channel, c.num_bytes);
        if (transport.rank() > 0) transport.receive(before, channel);
        compute(rounds);
        transport.send(next, channel, Buffer(c.num_bytes));
        if (transport.rank() == 0) transport.receive(before, channel);
    }
    transport.finish_sends();
    barrier(transport);
    return milliseconds_since(start) / c.repeats / transport.size();
}

}  // namespace

int main() {
    MpiSession session;
    const std::vector<Case> cases = {{1024, 0, 1000}, {1024, 2, 50},     {262144, 0, 200},
                                     {262144, 2, 50}, {8 << 20, 20, 10}, {64 << 20, 40, 4}};
    const double per_millisecond = rounds_per_millisecond();
    for (const Case& c : cases) {
        const auto rounds = static_cast<int64_t>(c.compute_ms * per_millisecond);
        MpiTransport transport(session);
        std::vector<double> exchanges;
        std::vector<double> chains;
        for (int trial = 0; trial < 3; ++trial) {
            exchanges.push_back(exchange_ms(transport, c, rounds));
            chains.push_back(chain_ms(transport, c, rounds));
        }
        std::sort(exchanges.begin(), exchanges.end());
        std::sort(chains.begin(), chains.end());
        if (session.rank() == 0) {
            std::printf("%9zu B  compute %4.0f ms  exchange %8.3f  chain %8.3f ms\n", c.num_bytes, c.compute_ms,
                        exchanges[1], chains[1]);
            std::fflush(stdout);
        }
    }
}
