#pragma once
// The CUDA cards of this process. Twins: cards_cuda.cpp with VPP_CUDA=ON, cards_none.cpp without; nothing else in vpp
// knows how it was built.
#include <cstdint>
#include <string>
#include <vector>

namespace vpp {

/// Whether the CUDA and NCCL parts are compiled in.
bool has_cuda_parts();

struct Card {
    std::string name;          ///< "NVIDIA H200"
    int major = 0, minor = 0;  ///< compute capability
    int64_t memory_bytes = 0;
    std::string id = {};    ///< of no other card, or part of one (MIG), as nvidia-smi -L has it: "GPU-..."
    std::string slot = {};  ///< where its host has it, "0000:3b:00"; parts of a card are in one
};

/// What this process may use (CUDA_VISIBLE_DEVICES), by index; empty where there is no card, no driver, or no CUDA
/// part.
/// Throws: Error{MissingInput} where there is a driver and CUDA does not start.
std::vector<Card> cuda_cards();

/// "CUDA 13.0" of the runtime that is linked; empty without CUDA parts.
std::string cuda_version();

}  // namespace vpp
