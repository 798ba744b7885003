#include "plan/transports.hpp"

#include "plan/kind_rows.hpp"

namespace vpp {

const std::vector<TransportKind>& all_transports() {
    static const std::vector<TransportKind> kTransports{
        {.kind = "auto", .links = UsesLinks::WherePossible, .keeps_order = false},
        {.kind = "mpi", .links = UsesLinks::No, .keeps_order = false},
        {.kind = "nccl", .links = UsesLinks::Yes, .keeps_order = true},
    };
    return kTransports;
}

const TransportKind& transport_named(const std::string& kind) {
    return row_of(all_transports(), kind);
}

}  // namespace vpp
