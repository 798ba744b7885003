// Messages that go to and fro between two ranks: vpp's transport against bare MPI calls, taking turns.
//   mpirun --oversubscribe -np 2 raw_transport_bench [ROUNDS]
// A line of JSON for each size: microseconds one way, and vpp's over MPI's as median, least and most of the rounds.
// Then a tensor of that size that is kept where it is sent: sent from its own memory, and copied into the message
// before.
#include <ATen/ops/ones.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "bench/timing.hpp"
#include "comm/collective.hpp"
#include "comm/mpi_session.hpp"
#include "comm/mpi_transport.hpp"
#include "stage/message.hpp"

namespace {

using namespace vpp;
using bench::median, bench::microseconds_one_way;
using Clock = std::chrono::steady_clock;

struct Size {
    size_t num_bytes;
    int repeats;
};

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

double tensor_us(MpiTransport& transport, const Size& size, Contents contents) {
    const int peer = 1 - transport.rank();
    const size_t room_bytes = size.num_bytes + 4096;
    at::Tensor tensor = at::ones({static_cast<int64_t>(size.num_bytes)}, at::kChar), kept;
    const auto send = [&](const Channel& channel) {
        kept = tensor;
        transport.send(peer, channel, encode_tensor(tensor, room_bytes, "the tensor", contents));
    };
    barrier(transport);
    const auto start = Clock::now();
    for (int i = 0; i < size.repeats; ++i) {
        const Channel channel{1, i, Direction::Forward};
        transport.post_receive(peer, channel, room_bytes);
        if (transport.rank() == 0) send(channel);
        tensor = decode_tensor(transport.receive(peer, channel), "the tensor").tensor;
        if (transport.rank() == 1) send(channel);
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
        std::vector<double> raw, own, ratios, in_place, copied, savings;
        for (int round = 0; round < rounds; ++round) {
            raw.push_back(raw_us(session, size));
            MpiTransport transport(session);
            own.push_back(vpp_us(transport, size));
            ratios.push_back(own.back() / raw.back());
            in_place.push_back(tensor_us(transport, size, Contents::SharedPart));
            copied.push_back(tensor_us(transport, size, Contents::InBytes));
            savings.push_back(in_place.back() / copied.back());
            barrier(transport);
        }
        if (session.rank() != 0) continue;
        std::sort(ratios.begin(), ratios.end());
        std::printf(R"({"bytes": %zu, "mpi_us": %.2f, "vpp_us": %.2f, "ratio": %.3f, "least": %.3f, "most": %.3f, )"
                    R"("tensor_us": %.2f, "tensor_copied_us": %.2f, "in_place_over_copied": %.3f})"
                    "\n",
                    size.num_bytes, median(raw), median(own), median(ratios), ratios.front(), ratios.back(),
                    median(in_place), median(copied), median(savings));
        std::fflush(stdout);
    }
}
