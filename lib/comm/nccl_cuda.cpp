#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <nccl.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock_alignment.hpp"
#include "comm/nccl.hpp"

namespace vpp {

namespace {

using c10::cuda::CUDAEvent;
using c10::cuda::CUDAStream;

void check_nccl(ncclResult_t result, const std::string& doing, ncclComm_t communicator = nullptr) {
    // In progress is no failure: communicators do not block.
    if (result == ncclSuccess || result == ncclInProgress) return;
    const std::string more = communicator == nullptr ? "" : ncclGetLastError(communicator);
    throw LinkFailure("NCCL has failed while " + doing + ": " + ncclGetErrorString(result) +
                      (more.empty() ? "" : " (" + more + ")") +
                      "; NCCL_DEBUG=INFO says more, mesh.transport = \"mpi\" goes without it");
}

/// From the allocator's pool of that stream, where it may be filled at once. What this thread's stream was given until
/// the memory is let go is done before anyone gets it again.
MemoryPart allocate_on(const CUDAStream& stream, size_t num_bytes) {
    const c10::cuda::CUDAStreamGuard guard(stream);
    const auto free = [](c10::DataPtr* memory) {
        const auto index = memory->device().index();
        c10::cuda::CUDACachingAllocator::recordStream(*memory, c10::cuda::getCurrentCUDAStream(index));
        delete memory;
    };
    const std::shared_ptr<c10::DataPtr> memory(
        new c10::DataPtr(c10::cuda::CUDACachingAllocator::get()->allocate(num_bytes)), free);
    return {std::shared_ptr<std::byte>(memory, static_cast<std::byte*>(memory->get())), num_bytes, true};
}

/// A stream that nobody shares: LibTorch's pool has 32, and links that share one wait for each other.
class OwnStream {
  public:
    OwnStream() {
        int least = 0, greatest = 0;
        C10_CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
        C10_CUDA_CHECK(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, greatest));
    }
    ~OwnStream() { C10_CUDA_IGNORE_ERROR(cudaStreamDestroy(stream_)); }
    OwnStream(const OwnStream&) = delete;
    OwnStream& operator=(const OwnStream&) = delete;

    CUDAStream on(c10::DeviceIndex device) const { return c10::cuda::getStreamFromExternal(stream_, device); }

  private:
    cudaStream_t stream_ = nullptr;
};

class NcclEnd final : public LinkEnd {
  public:
    /// Requires: the device is the thread's current one.
    NcclEnd(const ncclUniqueId& id, int place, int num_ranks, c10::DeviceIndex device)
        : device_(device), stream_(own_stream_.on(device)) {
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.blocking = 0;
        check_nccl(ncclCommInitRankConfig(&communicator_, num_ranks, id, place, &config), "connecting");
    }
    ~NcclEnd() override { abort(); }

    bool is_ready() override {
        ncclResult_t state = ncclSuccess;
        check_nccl(ncclCommGetAsyncError(communicator_, &state), "being asked", communicator_);
        check_nccl(state, "moving messages", communicator_);
        if (state == ncclInProgress) return false;
        if (given_) mark_given();
        return true;
    }

    std::vector<MemoryPart> move(std::vector<MemoryPart> sent, const std::vector<size_t>& received_bytes) override {
        const bool sends = std::any_of(sent.begin(), sent.end(), [](const MemoryPart& part) { return part.data; });
        if (sends) {
            CUDAEvent computed;
            computed.record(compute_stream());
            computed.block(stream_);
        }
        Operation operation = begin();
        operation.sent = std::move(sent);
        for (size_t num_bytes : received_bytes) {
            operation.received.push_back(num_bytes > 0 ? allocate_on(stream_, num_bytes) : MemoryPart{});
        }
        give(operation);
        given_ = std::move(operation);
        return given_->received;
    }

    /// What has ended needs no event: whatever the stream is given later finds it.
    bool deliver(int64_t operation) override {
        if (operation < num_done_) return true;
        under_way_[static_cast<size_t>(operation - num_done_)].done.block(compute_stream());
        return true;
    }

    int64_t num_done() override {
        is_ready();
        for (; !under_way_.empty() && under_way_.front().done.query(); ++num_done_) {
            Operation& ended = under_way_.front();
            if (ended.begun) timed_.emplace_back(std::move(*ended.begun), std::move(ended.done));
            under_way_.pop_front();
        }
        return num_done_;
    }

    void set_timed(bool is_timed) override { is_timed_ = is_timed; }

    std::vector<std::pair<int64_t, int64_t>> take_times() override {
        constexpr double kNanosecondsOfAMillisecond = 1e6;
        CUDAEvent last(cudaEventDefault);
        last.record(stream_);
        last.synchronize();
        const int64_t now = steady_nanoseconds();
        const auto time_of = [&](const CUDAEvent& event) {
            return now - std::llround(event.elapsed_time(last) * kNanosecondsOfAMillisecond);
        };
        std::vector<std::pair<int64_t, int64_t>> times;
        for (const auto& [begun, done] : timed_) times.emplace_back(time_of(begun), time_of(done));
        timed_.clear();
        return times;
    }

    // Also in place of destroying it, which may wait for the other rank.
    void abort() noexcept override {
        if (communicator_ != nullptr) ncclCommAbort(std::exchange(communicator_, nullptr));
    }

  private:
    struct Operation {
        std::vector<MemoryPart> sent;
        std::vector<MemoryPart> received;  ///< until it is in the stream
        std::optional<CUDAEvent> begun;    ///< when it is timed
        CUDAEvent done;
    };

    Operation begin() {
        if (!is_timed_) return {};
        Operation timed{.sent = {},
                        .received = {},
                        .begun = CUDAEvent(cudaEventDefault),
                        .done = CUDAEvent(cudaEventDefault)};
        timed.begun->record(stream_);
        return timed;
    }

    /// Gives NCCL all that moves as one group, which none of it has to wait for the rest in.
    void give(const Operation& operation) {
        ncclResult_t result = ncclGroupStart();
        const auto note = [&](ncclResult_t next) { result = result == ncclSuccess || result == ncclInProgress ? next : result; };
        for (size_t i = 0; i < operation.sent.size(); ++i) {
            const MemoryPart &out = operation.sent[i], &in = operation.received[i];
            const auto peer = static_cast<int>(i);
            if (out.num_bytes > 0) note(ncclSend(out.data.get(), out.num_bytes, ncclUint8, peer, communicator_, stream_));
            if (in.num_bytes > 0) note(ncclRecv(in.data.get(), in.num_bytes, ncclUint8, peer, communicator_, stream_));
        }
        note(ncclGroupEnd());
        check_nccl(result, "moving messages", communicator_);
    }

    CUDAStream compute_stream() const { return c10::cuda::getCurrentCUDAStream(device_); }

    /// NCCL gives the stream its kernel from a thread of its own, so the event comes when that has ended.
    void mark_given() {
        given_->done.record(stream_);
        given_->received.clear();  // whoever gets it next has it in this stream, behind what fills it
        under_way_.push_back(std::move(*given_));
        given_.reset();
    }

    c10::DeviceIndex device_;
    OwnStream own_stream_;
    CUDAStream stream_;
    ncclComm_t communicator_ = nullptr;
    std::optional<Operation> given_;  ///< not yet in the stream
    std::deque<Operation> under_way_;
    int64_t num_done_ = 0;
    bool is_timed_ = false;
    std::vector<std::pair<CUDAEvent, CUDAEvent>> timed_;  ///< begin and end of what has ended
};

class NcclLinks final : public LinkMaker {
  public:
    explicit NcclLinks(int device_index) : device_(static_cast<c10::DeviceIndex>(device_index)) {}

    Bytes make_id() override {
        ncclUniqueId id;
        check_nccl(ncclGetUniqueId(&id), "starting");
        const auto bytes = bytes_of(id);
        return {bytes.begin(), bytes.end()};
    }

    MemoryPart make_memory(size_t num_bytes) override {
        return allocate_on(c10::cuda::getCurrentCUDAStream(device_), num_bytes);
    }

    std::unique_ptr<LinkEnd> connect(const Bytes& id, int place, int num_ranks) override {
        return std::make_unique<NcclEnd>(ByteReader(id).get<ncclUniqueId>(), place, num_ranks, device_);
    }

  private:
    c10::DeviceIndex device_;
};

}  // namespace

std::string nccl_version() {
    constexpr int kMajor = 10000, kMinor = 100;
    int version = 0;
    if (ncclGetVersion(&version) != ncclSuccess) return "NCCL";
    return "NCCL " + std::to_string(version / kMajor) + "." + std::to_string(version % kMajor / kMinor) + "." +
           std::to_string(version % kMinor);
}

std::unique_ptr<LinkMaker> make_nccl_links(int device_index) {
    return std::make_unique<NcclLinks>(device_index);
}

}  // namespace vpp
