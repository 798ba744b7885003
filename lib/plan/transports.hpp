#pragma once
// The words of mesh.transport, and what each says of the way of values between ranks. "auto" stands for one of the
// others, which the ranks choose together (comm/transport_kinds.hpp).
#include <string>
#include <vector>

namespace vpp {

/// Whether values go over links, which connect the cards of ranks (comm/links.hpp).
enum class UsesLinks { No, WherePossible, Yes };

/// A word of mesh.transport.
struct TransportKind {
    const char* kind;
    UsesLinks links;
    bool keeps_order;  ///< messages of a channel arrive in the order in which they were sent
};

/// Every word, in the order in which they are shown.
const std::vector<TransportKind>& all_transports();
/// Requires: it is one of them.
const TransportKind& transport_named(const std::string& kind);

}  // namespace vpp
