#pragma once
// mesh.transport: what carries values between ranks.
#include <string>
#include <vector>

#include "comm/transport.hpp"

namespace vpp {

/// What mesh.transport may be in this build: "auto", "mpi" and, with CUDA parts, "nccl".
std::vector<std::string> transport_kinds();

/// "mpi" or "nccl", the same on every rank: auto is NCCL where every rank has a card of its own.
/// `card`: what no other card has; empty on a rank that computes on the CPU.
/// Throws on every rank: Error{Plan} for "nccl" where a rank has no card, or two ranks have the same, which NCCL cannot
/// serve; names the ranks and what to do.  Calls: collective.
std::string choose_transport(Transport& transport, const std::string& kind, const std::string& card);

}  // namespace vpp
