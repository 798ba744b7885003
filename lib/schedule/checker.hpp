#pragma once
// The checker: proves that a lowered schedule computes everything once, in order, with every message matched, and ends.
// It trusts nothing about the lists, since they may come from a user's file; it shares no code with the generators.
#include <cstdint>
#include <vector>

#include "schedule/schedule.hpp"

namespace vpp {

/// What is asked for beyond what every schedule needs.
struct CheckOptions {
    bool ordered_channels = false;  ///< what one rank sends another keeps its order, as over NCCL
    bool rendezvous = false;        ///< a run in which a send waits until its receive is reached ends
    bool reduces = false;           ///< every stage has a REDUCE_GRAD
};

/// What was counted while proving.
struct ScheduleFacts {
    int64_t num_computing = 0;        ///< F, B, I and W of all ranks
    int64_t num_messages = 0;         ///< matched pairs of SEND and RECV
    std::vector<int> peak_in_flight;  ///< per rank, in stage activations (peak_in_flight of schedule.hpp)
};

/// Proves, in this order; the first group with problems is reported, several at once:
/// 1. the shape: P lists, every stage on an existing rank, P v M within bounds;
/// 2. the computing actions: on their stage's rank, each exactly once for every stage and microbatch: F and B, or F, I
///    and W (F alone with forward_only); F before B or I, I before W; F of a stage in microbatch order (buffers advance
///    in it); REDUCE_GRAD at most once a stage, after its last B or W; a pair is an F and a B or I, in any order, one
///    directly behind the other, and the second does not need the first, since they run together;
/// 3. the messages: one SEND and one RECV for every route between ranks and microbatch, with the right stage and peer,
///    and none for others; the SEND after its producer, the RECV before its consumer; a hand-over on one rank in order;
/// 4. the order of channels, if asked for;
/// 5. no deadlock: a run with buffered sends ends, and one with sends that wait if asked for. Otherwise the error names
///    the circle of ranks that wait for each other, each with its action and the one that it waits for.
/// Requires: edges as in routes_of (schedule/edges.hpp).
/// Throws:   Error{Plan}.
ScheduleFacts check_schedule(const Schedule& lowered, const std::vector<ScheduleEdge>& edges,
                             const CheckOptions& options = {});

}  // namespace vpp
