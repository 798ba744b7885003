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

/// "0": NCCL does not set up NVLink's own reductions, which links have none of. Where other jobs or a container leave
/// no room for them the start could fail (NVIDIA/nccl#1788, #2077).
inline constexpr const char* kNcclReductionsVariable = "NCCL_NVLS_ENABLE";
inline constexpr const char* kNcclReductions = "0";

/// The networks by which MPI and NCCL send between hosts. NCCL's: "=eth1,eth2" are these names and no longer ones.
inline constexpr const char* kMpiInterfacesVariable = "OMPI_MCA_btl_tcp_if_include";
inline constexpr const char* kNcclInterfacesVariable = "NCCL_SOCKET_IFNAME";

/// What NCCL follows in place of what a link tells it: how much of a card a message may take (comm/link_room.hpp),
/// whether a call may wait where no deadline is, and whether each message waits for what another link was given before.
std::vector<std::string> overriding_nccl_variables();

/// What a rank computes on, as far as NCCL is concerned.
struct RankCard {
    std::string id;              ///< what no other card has; empty on a rank that computes on the CPU
    bool is_waited_for = false;  ///< the host waits for each kernel (kLaunchBlockingVariable)
    std::string host = {};       ///< the one that NCCL was told it is on (kNcclHostVariable); empty: the real one
    /// Where the card is plugged in: a host and its slot. Parts of a card (MIG) have one, and NCCL takes them for one
    /// card (NCCL, src/init.cc, "Duplicate GPU detected"). Empty: not known.
    std::string slot = {};
};

/// "mpi" or "nccl", the same on every rank: auto is NCCL where every rank has a card of its own and waits for none of
/// its kernels: NCCL's are done when the other rank's are. "nccl" also lets ranks share a card that were told different
/// hosts.
/// Throws on every rank: Error{Plan} for "nccl" where that is not so; names the ranks and what to do.
/// Calls: collective.
std::string choose_transport(Transport& transport, const std::string& kind, const RankCard& card);

}  // namespace vpp
