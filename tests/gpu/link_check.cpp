// Links by NCCL between two cards: contents, and vpp's transport against bare NCCL calls, taking turns.
//   mpirun -np 2 vpp_link_check [ROUNDS]
// A line of JSON for each size: microseconds one way, and vpp's over NCCL's. Ends with 77 and the reason where there
// are not two cards.
#include <ATen/ops/eq.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "base/error.hpp"
#include "comm/collective.hpp"
#include "comm/link_transport.hpp"
#include "comm/mpi_session.hpp"
#include "comm/mpi_transport.hpp"
#include "comm/nccl.hpp"
#include "comm/transport_kinds.hpp"
#include "device/cards.hpp"
#include "device/device.hpp"

namespace {

using namespace vpp;
using Clock = std::chrono::steady_clock;

constexpr int kSkipped = 77;

struct Size {
    int64_t num_bytes;
    int repeats;
};

double microseconds_one_way(Clock::time_point start, int repeats) {
    return std::chrono::duration<double, std::micro>(Clock::now() - start).count() / (2.0 * repeats);
}

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

Buffer message_over(const at::Tensor& tensor) {
    Buffer message(sizeof(int64_t));
    auto* data = static_cast<std::byte*>(tensor.data_ptr());
    message.set_part(
        {std::shared_ptr<std::byte>(std::make_shared<at::Tensor>(tensor), data), static_cast<size_t>(tensor.nbytes())});
    return message;
}

/// What a rank received it sends; rank 0 looks at the end whether it is what it sent first.
double linked_us(LinkTransport& transport, const Size& size, at::Device device) {
    const int peer = 1 - transport.rank();
    constexpr int kValue = 113;
    Buffer message;
    if (transport.rank() == 0) message = message_over(filled(size, kValue, device));
    barrier(transport);
    c10::cuda::device_synchronize();
    const auto start = Clock::now();
    for (int i = 0; i < size.repeats; ++i) {
        const Channel channel{1, i, Direction::Forward};
        transport.post_receive(peer, channel, 64);
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

void run(MpiSession& session, MpiTransport& transport, int rounds) {
    const at::Device device = device_of_rank("cuda", session.local_rank(), cuda_cards());
    start_device(device);
    choose_transport(transport, "nccl", cuda_cards().at(static_cast<size_t>(device.index())).id);
    RawLinks raw(transport);
    const auto maker = make_nccl_links(device.index());
    LinkTransport links(transport, {{{0, 1}, Direction::Forward}, {{1, 0}, Direction::Forward}}, *maker);
    for (const Size& size : {Size{1024, 500}, {256 << 10, 200}, {4 << 20, 100}, {256 << 20, 10}}) {
        std::vector<double> ratios;
        double theirs = 0, own = 0;
        for (int round = 0; round < rounds; ++round) {
            theirs = raw.us(size, device);
            own = linked_us(links, size, device);
            ratios.push_back(own / theirs);
        }
        std::sort(ratios.begin(), ratios.end());
        if (session.rank() != 0) continue;
        std::printf(R"({"bytes": %ld, "nccl_us": %.2f, "vpp_us": %.2f, "ratio": %.3f, "least": %.3f, "most": %.3f})"
                    "\n",
                    static_cast<long>(size.num_bytes), theirs, own, ratios[ratios.size() / 2], ratios.front(),
                    ratios.back());
    }
    barrier(transport);
}

}  // namespace

int main(int argc, char** argv) {
    MpiSession session;
    const size_t num_cards = cuda_cards().size();
    if (session.size() != 2 || num_cards < 2) {
        if (session.rank() == 0) {
            std::printf("skipped: NCCL needs a card for each of two ranks, and there are %d ranks and %zu cards\n",
                        session.size(), num_cards);
        }
        return kSkipped;
    }
    MpiTransport transport(session);
    run(session, transport, argc > 1 ? std::max(1, std::atoi(argv[1])) : 5);
}
