#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <nccl.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "comm/link_room.hpp"
#include "comm/nccl.hpp"
#include "device/device_marks.hpp"
#include "device/memory_meter.hpp"
#include "device/stream_memory.hpp"

namespace vpp {

namespace {

using c10::cuda::CUDAStream;

/// NCCL's words for an allocation that failed, or CUDA's.
bool tells_of_no_memory(const std::string& text) {
    const auto has = [&](const char* words) { return text.find(words) != std::string::npos; };
    return has("Failed to CUDA malloc") || has("Failed to CUDA calloc") || has("out of memory");
}

void check_nccl(ncclResult_t result, const std::string& doing, ncclComm_t communicator = nullptr) {
    // In progress is no failure: communicators do not block.
    if (result == ncclSuccess || result == ncclInProgress) return;
    const std::string more = communicator == nullptr ? "" : ncclGetLastError(communicator);
    if (result == ncclUnhandledCudaError && tells_of_no_memory(more)) {
        throw Error(ErrorKind::OutOfMemory, "NCCL has no memory left on the card while " + doing + ": " + more +
                                                "; use fewer stages a rank or smaller microbatches, let nobody else "
                                                "use the card, or take mesh.transport = \"mpi\", which needs none");
    }
    throw LinkFailure("NCCL has failed while " + doing + ": " + ncclGetErrorString(result) +
                      (more.empty() ? "" : " (" + more + ")") +
                      "; NCCL_DEBUG=INFO says more, mesh.transport = \"mpi\" goes without it");
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

/// What all ends of a link have from the first of its ranks.
struct LinkName {
    ncclUniqueId id;
    int num_blocks;  ///< NCCL wants the same at every end
};

class NcclEnd final : public LinkEnd {
  public:
    /// Requires: the device is the thread's current one.
    NcclEnd(const LinkName& name, int place, int num_ranks, c10::DeviceIndex device)
        : device_(device), stream_(own_stream_.on(device)) {
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.blocking = 0;
        config.maxCTAs = name.num_blocks;
        check_nccl(ncclCommInitRankConfig(&communicator_, num_ranks, name.id, place, &config), "connecting");
    }
    ~NcclEnd() override { abort(); }

    bool is_ready() override {
        ncclResult_t state = ncclSuccess;
        check_own(ncclCommGetAsyncError(communicator_, &state), "being asked");
        check_own(state, "moving messages");
        if (state == ncclInProgress) return false;
        if (given_) mark_given();
        return true;
    }

    std::vector<MemoryPart> move(std::vector<MemoryPart> sent, const std::vector<size_t>& received_bytes) override {
        const bool sends = std::any_of(sent.begin(), sent.end(), [](const MemoryPart& part) { return part.data; });
        if (sends) moment_of(compute_stream()).block(stream_);
        Operation operation;
        if (is_timed_) operation.begun = timed_moment_of(stream_);
        operation.sent = std::move(sent);
        for (size_t num_bytes : received_bytes) {
            operation.received.push_back(num_bytes > 0 ? make_memory(num_bytes) : MemoryPart{});
        }
        give(operation);
        given_ = std::move(operation);
        return given_->received;
    }

    MemoryPart make_memory(size_t num_bytes) override {
        return {stream_memory(stream_, compute_stream(), num_bytes), num_bytes, true};
    }

    /// What has ended needs no event: whatever the stream is given later finds it.
    bool deliver(int64_t operation) override {
        if (operation < num_done_) return true;
        under_way_[static_cast<size_t>(operation - num_done_)].done->block(compute_stream());
        return true;
    }

    int64_t num_done() override {
        is_ready();
        for (; !under_way_.empty() && under_way_.front().done->query(); ++num_done_) {
            Operation& ended = under_way_.front();
            if (ended.begun) timed_.emplace_back(std::move(*ended.begun), std::move(*ended.done));
            under_way_.pop_front();
        }
        return num_done_;
    }

    void set_timed(bool is_timed) override { is_timed_ = is_timed; }

    std::vector<std::pair<int64_t, int64_t>> take_times() override {
        if (timed_.empty()) return {};
        const EventClock clock(stream_);
        std::vector<std::pair<int64_t, int64_t>> times;
        for (const auto& [begun, done] : timed_) times.emplace_back(clock.time_of(begun), clock.time_of(done));
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
        std::optional<c10::Event> begun;   ///< when it is timed
        std::optional<c10::Event> done;    ///< once it is in the stream
    };

    /// A card that has failed says why itself; NCCL only that its calls fail, or nothing.
    void check_own(ncclResult_t result, const std::string& doing) const {
        if (result == ncclSuccess) return;
        const cudaError_t card = cudaStreamQuery(stream_);
        if (card != cudaErrorNotReady) C10_CUDA_CHECK(card);
        static_cast<void>(cudaGetLastError());  // that it is at work is no error of what runs next
        check_nccl(result, doing, communicator_);
    }

    /// One group: no message waits for the call of another.
    void give(const Operation& operation) {
        std::vector<ncclResult_t> results{ncclGroupStart()};
        for (size_t i = 0; i < operation.sent.size(); ++i) {
            const MemoryPart &out = operation.sent[i], &in = operation.received[i];
            const auto peer = static_cast<int>(i);
            if (out.num_bytes > 0) {
                results.push_back(ncclSend(out.data.get(), out.num_bytes, ncclUint8, peer, communicator_, stream_));
            }
            if (in.num_bytes > 0) {
                results.push_back(ncclRecv(in.data.get(), in.num_bytes, ncclUint8, peer, communicator_, stream_));
            }
        }
        results.push_back(ncclGroupEnd());
        for (ncclResult_t result : results) check_own(result, "moving messages");
    }

    CUDAStream compute_stream() const { return c10::cuda::getCurrentCUDAStream(device_); }

    /// NCCL gives the stream its kernel from a thread of its own, so the event comes when that has ended.
    void mark_given() {
        given_->done = given_->begun ? timed_moment_of(stream_) : moment_of(stream_);
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
    std::vector<std::pair<c10::Event, c10::Event>> timed_;  ///< begin and end of what has ended
};

class NcclLinks final : public LinkMaker {
  public:
    NcclLinks(int device_index, size_t num_links)
        : device_(static_cast<c10::DeviceIndex>(device_index)), num_links_(num_links) {}

    Bytes make_id() override {
        LinkName name{{}, blocks_of_a_link(num_multiprocessors(), num_links_)};
        try {
            check_nccl(ncclGetUniqueId(&name.id), "starting");
        } catch (const LinkFailure& failure) {
            throw Error(ErrorKind::MissingInput, failure.what());  // another start would meet the same
        }
        const auto bytes = bytes_of(name);
        return {bytes.begin(), bytes.end()};
    }

    MemoryPart make_memory(size_t num_bytes) override {
        const c10::Stream computing = c10::cuda::getCurrentCUDAStream(device_);
        return {stream_memory(computing, computing, num_bytes), num_bytes, true};
    }

    bool is_nearly_full() override { return MemoryMeter({at::kCUDA, device_}).is_nearly_full(); }

    void read(const MemoryPart& memory, std::span<std::byte> bytes) override {
        copy(bytes.data(), memory.data.get(), bytes.size(), cudaMemcpyDeviceToHost);
    }

    void write(const MemoryPart& memory, std::span<const std::byte> bytes) override {
        copy(memory.data.get(), bytes.data(), bytes.size(), cudaMemcpyHostToDevice);
    }

    std::unique_ptr<LinkEnd> connect(const Bytes& id, int place, int num_ranks) override {
        return std::make_unique<NcclEnd>(ByteReader(id).get<LinkName>(), place, num_ranks, device_);
    }

    void at_once(const std::function<void()>& aborts) noexcept override {
        ncclGroupStart();
        aborts();
        ncclGroupEnd();
    }

  private:
    void copy(void* to, const void* from, size_t num_bytes, cudaMemcpyKind kind) const {
        const CUDAStream computing = c10::cuda::getCurrentCUDAStream(device_);
        C10_CUDA_CHECK(cudaMemcpyAsync(to, from, num_bytes, kind, computing));
        C10_CUDA_CHECK(cudaStreamSynchronize(computing));
    }

    /// 0 without a card, which the connecting reports.
    int num_multiprocessors() const {
        int count = 0;
        const bool is_there = cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device_) == cudaSuccess;
        return is_there ? count : 0;
    }

    c10::DeviceIndex device_;
    size_t num_links_;
};

}  // namespace

std::string nccl_version() {
    constexpr int kMajor = 10000, kMinor = 100;
    int version = 0;
    if (ncclGetVersion(&version) != ncclSuccess) return "NCCL";
    return "NCCL " + std::to_string(version / kMajor) + "." + std::to_string(version % kMajor / kMinor) + "." +
           std::to_string(version % kMinor);
}

std::unique_ptr<LinkMaker> make_nccl_links(int device_index, size_t num_links) {
    return std::make_unique<NcclLinks>(device_index, num_links);
}

}  // namespace vpp
