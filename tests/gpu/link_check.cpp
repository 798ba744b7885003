// Messages between cards: contents, and vpp's transport against bare calls, taking turns.
//   mpirun -np 2 vpp_link_check nccl|mpi [ROUNDS [MOST_BYTES]]
//   VPP_PROGRAM=.../vpp_link_check VPP_CARDS=1 mpirun -np 2 own_host.sh nccl ...
// nccl: by links, against NCCL, from card to card, or from a card to itself for ranks that own_host.sh has on different
// hosts; mpi: through pinned memory of the host, against copies of CUDA and MPI, between ranks that may share a card.
// A line of JSON for each size: microseconds one way, and vpp's over the bare calls'. Ends with 77 and the reason where
// there are not enough cards.
#include <ATen/ops/empty.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <mpi.h>
#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "bench/timing.hpp"
#include "comm/collective.hpp"
#include "comm/link_transport.hpp"
#include "comm/mpi_session.hpp"
#include "comm/mpi_transport.hpp"
#include "comm/nccl.hpp"
#include "comm/transport_kinds.hpp"
#include "device/cards.hpp"
#include "device/device.hpp"
#include "gpu/cuda_environment.hpp"
#include "stage/torch_device_memory.hpp"

namespace {

using namespace vpp;
using bench::microseconds_one_way;
using Clock = std::chrono::steady_clock;

constexpr int kSkipped = 77;

struct Size {
    int64_t num_bytes;
    int repeats;
};

at::Tensor filled(const Size& size, int value, at::Device device) {
    return at::full({size.num_bytes}, value, at::TensorOptions().dtype(at::kByte).device(device));
}

/// Two communicators of the two ranks, one for each way, as vpp has them.
class RawLinks {
  public:
    explicit RawLinks(Transport& transport) : rank_(transport.rank()) {
        for (ncclComm_t& communicator : communicators_) {
            ncclUniqueId id{};
            if (rank_ == 0) check(ncclGetUniqueId(&id) == ncclSuccess, "NCCL makes names");
            const auto bytes = bytes_of(id);
            id = ByteReader(broadcast(transport, {bytes.begin(), bytes.end()})).get<ncclUniqueId>();
            check(ncclCommInitRank(&communicator, 2, id, rank_) == ncclSuccess, "NCCL connects");
        }
    }
    ~RawLinks() {
        for (ncclComm_t communicator : communicators_) ncclCommDestroy(communicator);
    }

    double us(const Size& size, at::Device device) {
        const auto stream = c10::cuda::getCurrentCUDAStream(device.index());
        const at::Tensor memory = filled(size, 1, device);
        const auto count = static_cast<size_t>(size.num_bytes);
        const auto send = [&](int way) {
            check(ncclSend(memory.const_data_ptr(), count, ncclUint8, 1 - rank_, communicators_[way], stream) ==
                      ncclSuccess,
                  "NCCL sends");
        };
        const auto receive = [&](int way) {
            check(ncclRecv(memory.mutable_data_ptr(), count, ncclUint8, 1 - rank_, communicators_[way], stream) ==
                      ncclSuccess,
                  "NCCL receives");
        };
        stream.synchronize();
        const auto start = Clock::now();
        for (int i = 0; i < size.repeats; ++i) {
            if (rank_ == 0) send(0);
            receive(1 - rank_);
            if (rank_ == 1) send(1);
        }
        stream.synchronize();
        return microseconds_one_way(start, size.repeats);
    }

  private:
    int rank_;
    ncclComm_t communicators_[2] = {};
};

/// Each message copied to pinned memory, sent by MPI, and copied back.
double raw_staged_us(MpiSession& session, const Size& size, at::Device device) {
    const std::lock_guard lock(session.mutex());
    const auto stream = c10::cuda::getCurrentCUDAStream(device.index());
    const at::Tensor memory = filled(size, 1, device);
    const at::Tensor pinned = at::empty({size.num_bytes}, at::TensorOptions(at::kByte).pinned_memory(true));
    const int peer = 1 - session.rank(), count = static_cast<int>(size.num_bytes);
    const auto send = [&] {
        pinned.copy_(memory, /*non_blocking=*/true);
        stream.synchronize();
        MPI_Send(pinned.const_data_ptr(), count, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
    };
    MPI_Barrier(MPI_COMM_WORLD);
    const auto start = Clock::now();
    for (int i = 0; i < size.repeats; ++i) {
        if (session.rank() == 0) send();
        MPI_Recv(pinned.mutable_data_ptr(), count, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        memory.copy_(pinned, /*non_blocking=*/true);
        if (session.rank() == 1) send();
    }
    stream.synchronize();
    return microseconds_one_way(start, size.repeats);
}

Buffer message_over(const at::Tensor& tensor) {
    Buffer message(sizeof(int64_t));
    auto* data = static_cast<std::byte*>(tensor.data_ptr());
    message.set_part({std::shared_ptr<std::byte>(std::make_shared<at::Tensor>(tensor), data),
                      static_cast<size_t>(tensor.nbytes()), /*is_on_device=*/true});
    return message;
}

/// What a rank received it sends; rank 0 looks at the end whether it is what it sent first.
double own_us(Transport& transport, const Size& size, at::Device device) {
    const int peer = 1 - transport.rank();
    constexpr int kValue = 113;
    Buffer message;
    if (transport.rank() == 0) message = message_over(filled(size, kValue, device));
    barrier(transport);
    c10::cuda::device_synchronize();
    const auto start = Clock::now();
    for (int i = 0; i < size.repeats; ++i) {
        const Channel channel{1, i, Direction::Forward};
        transport.post_receive(peer, channel, 64 + static_cast<size_t>(size.num_bytes));
        if (transport.rank() == 0) transport.send(peer, channel, std::move(message));
        message = transport.receive(peer, channel);
        if (transport.rank() == 1) transport.send(peer, channel, message);
    }
    transport.finish_sends();
    c10::cuda::device_synchronize();
    const double us = microseconds_one_way(start, size.repeats);
    if (transport.rank() == 0) {
        const auto options = at::TensorOptions().dtype(at::kByte).device(device);
        const at::Tensor came = at::from_blob(message.part().data.get(), {size.num_bytes}, options);
        check(came.eq(kValue).all().item<bool>(), "what came back is what was sent");
    }
    return us;
}

using Timed = std::function<double(const Size&)>;  ///< microseconds one way

struct Extent {
    int rounds;
    int64_t most_bytes;
};

void compare(int rank, const Extent& extent, const Timed& bare, const Timed& own) {
    for (const Size& size : {Size{1024, 500}, {256 << 10, 200}, {4 << 20, 100}, {64 << 20, 20}}) {
        if (size.num_bytes > extent.most_bytes) continue;
        std::vector<double> ratios;
        double bare_us = 0, vpp_us = 0;
        for (int round = 0; round < extent.rounds; ++round) {
            bare_us = bare(size);
            vpp_us = own(size);
            ratios.push_back(vpp_us / bare_us);
        }
        std::sort(ratios.begin(), ratios.end());
        if (rank != 0) continue;
        std::printf(R"({"bytes": %ld, "bare_us": %.2f, "vpp_us": %.2f, "ratio": %.3f, "least": %.3f, "most": %.3f})"
                    "\n",
                    static_cast<long>(size.num_bytes), bare_us, vpp_us, ratios[ratios.size() / 2], ratios.front(),
                    ratios.back());
    }
}

void compare_nccl(MpiTransport& transport, at::Device device, const Extent& extent) {
    RawLinks raw(transport);
    const std::vector<Link> both{{{0, 1}}, {{1, 0}}};
    const auto maker = make_nccl_links(device.index(), both.size());
    LinkTransport links(transport, both, *maker);
    compare(
        transport.rank(), extent, [&](const Size& size) { return raw.us(size, device); },
        [&](const Size& size) { return own_us(links, size, device); });
    barrier(transport);  // a link's end drops what the other rank has not received yet
}

void compare_staged(MpiSession& session, MpiTransport& transport, at::Device device, const Extent& extent) {
    transport.carry(make_staged_memory(device));
    compare(
        transport.rank(), extent, [&](const Size& size) { return raw_staged_us(session, size, device); },
        [&](const Size& size) { return own_us(transport, size, device); });
}

}  // namespace

int main(int argc, char** argv) {
    test::prepare_cuda_for_links();
    MpiSession session;
    const bool is_nccl = argc < 2 || std::string(argv[1]) == "nccl";
    const char* nccl_host = std::getenv(kNcclHostVariable);
    const size_t num_cards = cuda_cards().size(), num_needed = is_nccl && nccl_host == nullptr ? 2 : 1;
    if (session.size() != 2 || num_cards < num_needed) {
        if (session.rank() == 0) {
            std::printf("skipped: %s, and there are %d ranks and %zu cards\n",
                        is_nccl ? "NCCL needs a card for each of two ranks" : "two ranks need a card", session.size(),
                        num_cards);
        }
        return kSkipped;
    }
    const Extent extent{argc > 2 ? std::max(1, std::atoi(argv[2])) : 5,
                        argc > 3 ? std::atoll(argv[3]) : std::numeric_limits<int64_t>::max()};
    const at::Device device = device_of_rank("cuda", session.local_rank(), cuda_cards());
    start_device(device);
    MpiTransport transport(session);
    if (is_nccl) {
        compare_nccl(transport, device, extent);
    } else {
        compare_staged(session, transport, device, extent);
    }
    barrier(transport);
}
