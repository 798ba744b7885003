#pragma once
// What a rank says when a wait passed its deadline: it has asked all ranks what they do, and makes one sentence of who
// answered and who did not. Pure functions; comm/mpi_transport.hpp asks over MPI, comm/in_process.hpp looks.
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "comm/transport.hpp"

namespace vpp {

/// "has waited 60.0 s for rank 2 to send forward edge 3, microbatch 2 (at most 4.0 MiB)"
std::string to_text(const Wait& wait);

/// What one rank does.
struct RankStatus {
    std::string position;         ///< "stage 2, F of microbatch 3"
    double position_seconds = 0;  ///< since when
    std::optional<Wait> wait;     ///< empty: it computes
};

/// "rank 2 (stage 2, F of microbatch 3) has computed for 61.0 s", or its wait.
std::string to_text(int rank, const RankStatus& status);

/// A status as a message of bounded size (a long position is cut), and back.
Bytes encode(const RankStatus& status);
RankStatus decode_rank_status(std::span<const std::byte> bytes);

/// All that a rank knows when its wait passed the deadline.
struct Inquiry {
    int rank = 0;                                    ///< who asks; it waits
    std::vector<std::optional<RankStatus>> answers;  ///< by rank, its own included; empty = silent
    std::vector<double> heard_seconds;               ///< by rank: since when nothing came from it
    std::vector<Channel> unposted;                   ///< what the awaited peer has sent and nobody here asked for
};

/// One sentence: the wait, then the silent ranks, the chain of waits down to the rank that holds up the others, and
/// where the other ranks are (of many, the first). Requires: answers[rank] is set and waits.
std::string lost_text(const Inquiry& inquiry);

}  // namespace vpp
