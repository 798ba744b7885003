#pragma once
// Where a rank computes: mesh.device as LibTorch's device, and what makes its kernels give the same bits every time.
// Everything right of here takes an at::Device as a value and asks tensors for theirs.
#include <c10/core/Device.h>

#include <array>
#include <string>
#include <vector>

#include "device/cards.hpp"

namespace vpp {

/// What mesh.device may be in this build: "auto", "cpu" and, with CUDA parts, "cuda".
std::vector<std::string> device_kinds();

/// "cpu" or "cuda": auto is CUDA where there is a card.
/// Throws Error{MissingInput} for "cuda" without a card.
std::string resolve_device_kind(const std::string& kind, const std::vector<Card>& cards);

/// The device of a rank: of the cards the one of its number among the ranks of its host; ranks share cards where there
/// are more of them.
/// Requires: a resolved kind; cards for "cuda".
at::Device device_of_rank(const std::string& kind, int local_rank, const std::vector<Card>& cards);

/// For who looks at a plan without a job.
struct KnownCards {
    std::vector<Card> cards;
    std::string problem;  ///< why CUDA does not start; none is known then
};
KnownCards known_cards();

/// What the ranks of a plan compute on, without a job: a card for "cuda", be there one here or not, and for "auto"
/// where one is known.
at::Device planned_device(const std::string& kind, const std::vector<Card>& cards);

/// Starts it and makes it this thread's own, so that ranks make nothing on cards of others.
/// Throws Error{MissingInput} in LibTorch's words when it does not start.
void start_device(at::Device device);

/// Whether start_device was asked for a card in this process.
bool has_started_card();

/// For all threads of this process: only kernels that give the same bits every time, no TF32, no choice of kernels by
/// trial. An op that has no such kernel throws when it runs. Does nothing for the CPU, whose kernels are so.
/// Requires: CUBLAS_WORKSPACE_CONFIG is set before the first kernel runs (kCublasWorkspace).
void use_exact_kernels(at::Device device);

/// What cuBLAS asks of a process for equal bits on one stream (PyTorch's notes on reproducibility).
inline constexpr const char* kCublasVariable = "CUBLAS_WORKSPACE_CONFIG";
inline constexpr const char* kCublasWorkspace = ":4096:8";

/// How many streams of a process a card keeps apart; more share its queues, and what one waits for then holds up
/// another (CUDA's programming guide; 8 by default, 32 at most). A rank has a stream for each of its links.
inline constexpr const char* kCudaQueuesVariable = "CUDA_DEVICE_MAX_CONNECTIONS";
inline constexpr const char* kCudaQueues = "32";

/// A kernel that is loaded when it is first used may wait for all that the card does (CUDA programming guide, 4.7 "Lazy
/// Loading"), and the card runs one for each message whose other end is not there yet: two ranks could wait for each
/// other. To be set before CUDA starts, where ranks send from card to card.
inline constexpr const char* kKernelLoadingVariable = "CUDA_MODULE_LOADING";
inline constexpr const char* kKernelLoading = "EAGER";

/// "1": LibTorch chooses products by trial, on each card for itself, and the bits with them.
inline constexpr const char* kTunableVariable = "PYTORCH_TUNABLEOP_ENABLED";

/// LibTorch's memory without its own allocator, or without what that keeps: recordings of ops live in its pools, and
/// what it counts says which rank took memory of its card.
inline constexpr std::array kAllocatorVariables{"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"};
inline constexpr const char* kOtherAllocator = "backend:cudaMallocAsync";
inline constexpr const char* kNoCacheVariable = "PYTORCH_NO_CUDA_MEMORY_CACHING";

/// "1": the host waits for every kernel that it starts (CUDA's programming guide), so that an error has its place.
inline constexpr const char* kLaunchBlockingVariable = "CUDA_LAUNCH_BLOCKING";

/// What decides the bits of a device's kernels, beside LibTorch's build: "NVIDIA H200 (9.0), CUDA 13.0"; empty for the
/// CPU.
std::string device_text(at::Device device, const std::vector<Card>& cards);

}  // namespace vpp
