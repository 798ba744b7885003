#pragma once
// mesh.transport: what carries values between ranks.
#include <string>
#include <vector>

#include "comm/transport.hpp"

namespace vpp {

/// What mesh.transport may be in this build: "auto", "mpi" and, with CUDA parts, "nccl".
std::vector<std::string> transport_kinds();

/// With it NCCL takes ranks for ones of different hosts, which it lets share a card, by sockets: slow, but it shows on
/// one card that NCCL's messages are right (NCCL, src/misc/utils.cc, getHostHash).
constexpr const char* kNcclHostVariable = "NCCL_HOSTID";

/// What a rank computes on, as far as NCCL is concerned.
struct RankCard {
    std::string id;              ///< what no other card has; empty on a rank that computes on the CPU
    bool is_waited_for = false;  ///< the host waits for each kernel (kLaunchBlockingVariable)
    std::string host = {};       ///< the one that NCCL was told it is on (kNcclHostVariable); empty: the real one
};

/// "mpi" or "nccl", the same on every rank: auto is NCCL where every rank has a card of its own and waits for none of
/// its kernels: NCCL's are done when the other rank's are. "nccl" also lets ranks share a card that were told different
/// hosts.
/// Throws on every rank: Error{Plan} for "nccl" where that is not so; names the ranks and what to do.
/// Calls: collective.
std::string choose_transport(Transport& transport, const std::string& kind, const RankCard& card);

}  // namespace vpp
