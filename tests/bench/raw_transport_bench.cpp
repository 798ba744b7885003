// Messages that go to and fro between two ranks: vpp's transport against bare MPI calls, taking turns.
//   mpirun --oversubscribe -np 2 raw_transport_bench [ROUNDS]
// A line of JSON for each size: microseconds one way, and vpp's over MPI's as median, least and most of the rounds.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "comm/collective.hpp"
#include "comm/mpi_session.hpp"
#include "comm/mpi_transport.hpp"

namespace {

using namespace vpp;
using Clock = std::chrono::steady_clock;

struct Size {
    size_t num_bytes;
    int repeats;
};

double microseconds_one_way(Clock::time_point start, int repeats) {
    return std::chrono::duration<double, std::micro>(Clock::now() - start).count() / (2.0 * repeats);
}

double raw_us(MpiSession& session, const Size& size) {
    const std::lock_guard lock(session.mutex());
    std::vector<std::byte> memory(size.num_bytes);
    const int peer = 1 - session.rank(), count = static_cast<int>(size.num_bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    const auto start = Clock::now();
    for (int i = 0; i < size.repeats; ++i) {
        if (session.rank() == 0) MPI_Send(memory.data(), count, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
        MPI_Recv(memory.data(), count, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (session.rank() == 1) MPI_Send(memory.data(), count, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
    }
    return microseconds_one_way(start, size.repeats);
}

/// One message's memory goes to and fro: what a rank received it sends.
double vpp_us(MpiTransport& transport, const Size& size) {
    const int peer = 1 - transport.rank();
    Buffer message(size.num_bytes);
    std::fill(message.bytes().begin(), message.bytes().end(), std::byte{1});
    barrier(transport);
    const auto start = Clock::now();
    for (int i = 0; i < size.repeats; ++i) {
        const Channel channel{1, i, Direction::Forward};
        transport.post_receive(peer, channel, size.num_bytes);
        if (transport.rank() == 0) transport.send(peer, channel, std::move(message));
        message = transport.receive(peer, channel);
        if (transport.rank() == 1) transport.send(peer, channel, std::move(message));
    }
    transport.finish_sends();
    return microseconds_one_way(start, size.repeats);
}

}  // namespace

int main(int argc, char** argv) {
    MpiSession session;
    if (session.size() != 2) {
        std::fprintf(stderr, "raw_transport_bench: two ranks are needed (mpirun -np 2)\n");
        return 2;
    }
    const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 5;
    for (const Size& size : {Size{1024, 2000}, {16 << 10, 1000}, {256 << 10, 200}, {4 << 20, 30}, {64 << 20, 4}}) {
        std::vector<double> ratios;
        double raw = 0, own = 0;
        for (int round = 0; round < rounds; ++round) {
            raw = raw_us(session, size);
            MpiTransport transport(session);
            own = vpp_us(transport, size);
            barrier(transport);
            ratios.push_back(own / raw);
        }
        std::sort(ratios.begin(), ratios.end());
        if (session.rank() != 0) continue;
        std::printf(R"({"bytes": %zu, "mpi_us": %.2f, "vpp_us": %.2f, "ratio": %.3f, "least": %.3f, "most": %.3f})"
                    "\n",
                    size.num_bytes, raw, own, ratios[ratios.size() / 2], ratios.front(), ratios.back());
        std::fflush(stdout);
    }
}
