#pragma once
// mesh.transport: what carries values between ranks.
#include <string>
#include <vector>

#include "comm/transport.hpp"

namespace vpp {

/// What mesh.transport may be in this build: "auto", "mpi" and, with CUDA parts, "nccl".
std::vector<std::string> transport_kinds();

/// What a rank computes on, as far as NCCL is concerned.
struct RankCard {
    std::string id;              ///< what no other card has; empty on a rank that computes on the CPU
    bool is_waited_for = false;  ///< the host waits for each kernel (kLaunchBlockingVariable)
};

/// "mpi" or "nccl", the same on every rank: auto is NCCL where every rank has a card of its own and waits for none of
/// its kernels: NCCL's are done when the other rank's are.
/// Throws on every rank: Error{Plan} for "nccl" where that is not so; names the ranks and what to do.
/// Calls: collective.
std::string choose_transport(Transport& transport, const std::string& kind, const RankCard& card);

}  // namespace vpp
