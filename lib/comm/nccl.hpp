#pragma once
// Links by NCCL. Twins: nccl_cuda.cpp with VPP_CUDA=ON, nccl_none.cpp without.
#include <cstddef>
#include <memory>
#include <string>

#include "comm/links.hpp"

namespace vpp {

/// "NCCL 2.28.9"; empty without CUDA parts.
std::string nccl_version();

/// Each link is a communicator of its ranks with a stream of its own on the card `device_index`, so that no other link
/// waits for it, and the computing only for what is delivered. `num_links`: the most that any rank has, the same on
/// every rank; so many find room on the card at once (comm/link_room.hpp).
/// Requires: CUDA parts, and that this thread has made the card its own (device/device.hpp). All calls of the maker and
/// its ends come from that thread.
std::unique_ptr<LinkMaker> make_nccl_links(int device_index, size_t num_links);

}  // namespace vpp
