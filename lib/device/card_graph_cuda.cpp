// Source: CUDA's programming guide, "CUDA Graphs"; of LibTorch's allocators, ATen/cuda/CUDAGraph.h. LibTorch's own
// class is not used: a recording that fails leaves its generator in a state that nothing ends.
#include <ATen/core/CachingHostAllocator.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <atomic>
#include <map>

#include "device/card_graph.hpp"

namespace vpp {

namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

/// Memory that only graphs get, of the card and pinned: LibTorch's allocators know it by this number. Pinned memory
/// that a graph copies would else be an op's of later, whose bytes a replay took.
class GraphMemory {
  public:
    explicit GraphMemory(c10::DeviceIndex card) : card_(card), id_{0, next_id()} {}
    ~GraphMemory() {
        for (int i = 0; i < num_uses_; ++i) {
            pinned().release_pool(id_);
            allocator::releasePool(card_, id_);
        }
    }
    GraphMemory(const GraphMemory&) = delete;
    GraphMemory& operator=(const GraphMemory&) = delete;

    /// From now on what a stream that records asks for comes from here.
    void begin(c10::cuda::CUDAStream recording) {
        allocator::beginAllocateToPool(card_, id_,
                                       [recording](cudaStream_t stream) { return stream == recording.stream(); });
        pinned().begin_allocate_to_pool(id_, [recording](c10::Stream stream) { return stream == recording; });
        ++num_uses_;
    }
    void end() {
        pinned().end_allocate_to_pool(id_);
        allocator::endAllocateToPool(card_, id_);
    }

  private:
    static at::HostAllocator& pinned() { return *at::getHostAllocator(at::kCUDA); }

    /// LibTorch counts its own in the first number, and those of users in the second.
    static c10::CaptureId_t next_id() {
        static std::atomic<c10::CaptureId_t> last = 0;
        constexpr c10::CaptureId_t kOurs = c10::CaptureId_t{1} << 40;
        return kOurs + ++last;
    }

    c10::DeviceIndex card_;
    c10::MempoolId_t id_;
    int num_uses_ = 0;
};

class CudaGraph : public CardGraph {
  public:
    CudaGraph(cudaGraphExec_t graph, std::shared_ptr<GraphMemory> memory) : graph_(graph), memory_(std::move(memory)) {}
    ~CudaGraph() override { C10_CUDA_CHECK_WARN(cudaGraphExecDestroy(graph_)); }
    /// Else the first replay does it, which could then wait for messages that are under way.
    void upload(cudaStream_t stream) { C10_CUDA_CHECK(cudaGraphUpload(graph_, stream)); }
    void replay() override { C10_CUDA_CHECK(cudaGraphLaunch(graph_, c10::cuda::getCurrentCUDAStream())); }

  private:
    cudaGraphExec_t graph_;
    std::shared_ptr<GraphMemory> memory_;
};

/// A stream that takes note of what it is given and does nothing.
class Recording {
  public:
    Recording(c10::cuda::CUDAStream stream, GraphMemory& memory) : stream_(stream), memory_(memory) {
        memory_.begin(stream_);
        // Threads that move messages go on meanwhile.
        const cudaError_t begun = cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal);
        if (begun != cudaSuccess) memory_.end();
        C10_CUDA_CHECK(begun);
    }
    ~Recording() {
        if (!is_open_) return;
        cudaGraph_t graph = nullptr;
        if (close(graph) == cudaSuccess && graph != nullptr) C10_CUDA_CHECK_WARN(cudaGraphDestroy(graph));
        cudaGetLastError();  // why it failed is on its way
    }
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

    cudaGraphExec_t finish() {
        cudaGraph_t graph = nullptr;
        C10_CUDA_CHECK(close(graph));
        cudaGraphExec_t made = nullptr;
        const cudaError_t instantiated = cudaGraphInstantiate(&made, graph, 0);
        C10_CUDA_CHECK_WARN(cudaGraphDestroy(graph));
        C10_CUDA_CHECK(instantiated);
        return made;
    }

  private:
    cudaError_t close(cudaGraph_t& graph) {
        is_open_ = false;
        const cudaError_t ended = cudaStreamEndCapture(stream_, &graph);
        memory_.end();
        return ended;
    }

    c10::cuda::CUDAStream stream_;
    GraphMemory& memory_;
    bool is_open_ = true;
};

class CudaRecorder : public CardRecorder {
  public:
    explicit CudaRecorder(at::Device device)
        : stream_(recording_stream(device)), memory_(std::make_shared<GraphMemory>(device.index())) {}

    std::unique_ptr<CardGraph> record(const std::function<void()>& ops) override {
        const c10::cuda::CUDAStreamGuard guard(stream_);
        Recording recording(stream_, *memory_);
        ops();
        auto graph = std::make_unique<CudaGraph>(recording.finish(), memory_);
        graph->upload(stream_);
        return graph;
    }

  private:
    /// One of a card for all, as cuBLAS has a workspace for each; none of LibTorch's pool, whose streams others get
    /// too.
    static c10::cuda::CUDAStream recording_stream(at::Device device) {
        static std::map<c10::DeviceIndex, cudaStream_t> streams;
        cudaStream_t& stream = streams[device.index()];
        if (stream == nullptr) C10_CUDA_CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0));
        return c10::cuda::getStreamFromExternal(stream, device.index());
    }

    c10::cuda::CUDAStream stream_;
    std::shared_ptr<GraphMemory> memory_;
};

}  // namespace

std::unique_ptr<CardRecorder> make_card_recorder(at::Device device) {
    return std::make_unique<CudaRecorder>(device);
}

}  // namespace vpp
