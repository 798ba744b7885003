#pragma once
// The networks between hosts, as Open MPI was told of them, by the names that other libraries know.
#include <cstdint>
#include <string>
#include <vector>

namespace vpp {

/// An interface of this host and one of its addresses (IPv4, the first byte highest).
struct HostAddress {
    std::string interface;
    uint32_t address = 0;
};

/// Of this host; empty where it does not tell.
std::vector<HostAddress> look_at_addresses();

/// `list`: names and subnets, "eth1,10.0.0.0/24" (Open MPI's btl_tcp_if_include). The names of what is meant, each
/// once, in that order; an entry that is neither is left out.
std::vector<std::string> interfaces_in(const std::string& list, const std::vector<HostAddress>& addresses);

}  // namespace vpp
