// Messages of a device through the host's memory, between two ranks: in pieces or whole, against MPI's own calls
// between whole copies, taking turns. The device is a model: its copies take no core, and the time that a rate and a
// start of 8 us give, one after the other in each direction.
//   mpirun --oversubscribe -np 2 vpp_staged_bench [GB_A_SECOND [PIECE_KIB [ROUNDS]]]
// A line for each size: microseconds one way, and vpp's over the bare calls'.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "bench/timing.hpp"
#include "comm/collective.hpp"
#include "comm/device_memory.hpp"
#include "comm/mpi_session.hpp"
#include "comm/mpi_transport.hpp"

namespace {

using namespace vpp;
using bench::median, bench::microseconds_one_way;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr double kStartSeconds = 8e-6, kNextSeconds = 2e-6;

double now() {
    return Seconds(Clock::now().time_since_epoch()).count();
}

/// Blocks that are given again, as a caching allocator does.
class Blocks {
  public:
    MemoryPart take(size_t num_bytes, bool is_on_device) {
        for (const MemoryPart& block : all_) {
            if (block.num_bytes == num_bytes && block.data.use_count() == 1)
                return {block.data, num_bytes, is_on_device};
        }
        const auto memory = std::make_shared<std::vector<std::byte>>(num_bytes, std::byte{1});
        all_.push_back({{memory, memory->data()}, num_bytes, is_on_device});
        return all_.back();
    }

  private:
    std::vector<MemoryPart> all_;
};

class ModelDevice final : public DeviceMemory {
  public:
    ModelDevice(double rate, size_t piece_bytes) : rate_(rate), piece_bytes_(piece_bytes) {}

    void enter() override {}
    size_t piece_bytes() const override { return piece_bytes_; }
    MemoryPart take(size_t num_bytes) override { return staged_.take(num_bytes, false); }
    MemoryPart make(size_t num_bytes) { return own_.take(num_bytes, true); }

    Outgoing send(MemoryPart part) override {
        const double begin = std::max({now(), sending_until_, receiving_until_}) + kStartSeconds;
        sending_until_ = begin + static_cast<double>(part.num_bytes) / rate_;
        return {take(part.num_bytes), [=, this, num_bytes = part.num_bytes] {
                    const double copied = std::max(0.0, now() - begin) * rate_;
                    if (copied >= static_cast<double>(num_bytes)) return num_bytes;
                    const size_t piece_bytes = std::min(piece_bytes_, num_bytes);
                    return static_cast<size_t>(copied) / piece_bytes * piece_bytes;
                }};
    }

    std::unique_ptr<Delivery> deliver(MemoryPart taken) override {
        return std::make_unique<Arriving>(*this, std::move(taken));
    }

  private:
    class Arriving final : public Delivery {
      public:
        Arriving(ModelDevice& device, MemoryPart taken) : device_(device), taken_(std::move(taken)) {}
        void advance(size_t num_bytes) override {
            if (num_bytes == copied_) return;
            const double start = copied_ == 0 ? kStartSeconds : kNextSeconds;
            device_.receiving_until_ = std::max(now(), device_.receiving_until_) + start +
                                       static_cast<double>(num_bytes - copied_) / device_.rate_;
            copied_ = num_bytes;
        }
        MemoryPart finish() override { return device_.make(taken_.num_bytes); }

      private:
        ModelDevice& device_;
        MemoryPart taken_;
        size_t copied_ = 0;
    };

    double rate_;
    size_t piece_bytes_;
    Blocks staged_, own_;
    double sending_until_ = 0, receiving_until_ = 0;
};

struct Size {
    size_t num_bytes;
    int repeats;
};

double bare_us(MpiSession& session, const Size& size, double rate) {
    const std::lock_guard lock(session.mutex());
    std::vector<std::byte> memory(size.num_bytes);
    const int peer = 1 - session.rank(), count = static_cast<int>(size.num_bytes);
    const auto copy = [&] {
        const double until = now() + kStartSeconds + static_cast<double>(size.num_bytes) / rate;
        while (now() < until) {
        }
    };
    const auto send = [&] {
        copy();
        MPI_Send(memory.data(), count, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
    };
    MPI_Barrier(MPI_COMM_WORLD);
    const auto start = Clock::now();
    for (int i = 0; i < size.repeats; ++i) {
        if (session.rank() == 0) send();
        MPI_Recv(memory.data(), count, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        copy();
        if (session.rank() == 1) send();
    }
    return microseconds_one_way(start, size.repeats);
}

/// What a rank received it sends.
double own_us(MpiTransport& transport, ModelDevice& device, const Size& size) {
    const int peer = 1 - transport.rank();
    Buffer message(sizeof(int64_t));
    message.set_part(device.make(size.num_bytes));
    barrier(transport);
    const auto start = Clock::now();
    for (int i = 0; i < size.repeats; ++i) {
        const Channel channel{1, i, Direction::Forward};
        transport.post_receive(peer, channel, message.size_bytes());
        if (transport.rank() == 0) transport.send(peer, channel, message);
        message = transport.receive(peer, channel);
        if (transport.rank() == 1) transport.send(peer, channel, message);
    }
    transport.finish_sends();
    return microseconds_one_way(start, size.repeats);
}

}  // namespace

int main(int argc, char** argv) {
    MpiSession session;
    if (session.size() != 2) {
        std::fprintf(stderr, "vpp_staged_bench: two ranks are needed (mpirun -np 2)\n");
        return 2;
    }
    const auto number = [&](int index, int usual) {
        return argc > index ? std::max(0, std::atoi(argv[index])) : usual;
    };
    const double rate = 1e9 * std::max(1, number(1, 50));
    const auto piece_kib = static_cast<size_t>(number(2, 1024));
    const size_t piece_bytes = piece_kib == 0 ? std::numeric_limits<size_t>::max() : piece_kib << 10;
    MpiTransport transport(session);
    auto owned = std::make_unique<ModelDevice>(rate, piece_bytes);
    ModelDevice& device = *owned;
    transport.carry(std::move(owned));
    for (const Size& size : {Size{1024, 500}, {256 << 10, 300}, {4 << 20, 100}, {16 << 20, 40}, {64 << 20, 20}}) {
        std::vector<double> bare, own;
        for (int round = 0; round < std::max(1, number(3, 5)); ++round) {
            bare.push_back(bare_us(session, size, rate));
            own.push_back(own_us(transport, device, size));
        }
        if (session.rank() != 0) continue;
        std::printf("%9zu bytes: bare %9.1f us, vpp %9.1f us, ratio %.3f\n", size.num_bytes, median(bare), median(own),
                    median(own) / median(bare));
        std::fflush(stdout);
    }
    barrier(transport);
}
