#pragma once
// One step as it went on all ranks, on one clock: for drawings, tables and traces (schedule/measured_trace.hpp).
#include <cstdint>
#include <string>
#include <vector>

#include "schedule/measured_times.hpp"

namespace vpp {

/// When the parts of a step began on a rank; nanoseconds.
struct StepMoments {
    int64_t begin = 0;     ///< of the actions
    int64_t exchange = 0;  ///< the actions are done: norms and losses go between the ranks
    int64_t update = 0;    ///< every rank has them: clipping and the optimizer
    int64_t end = 0;
};

/// An input of a microbatch being read, by a thread beside the actions or in front of its F; nanoseconds.
struct ReadSpan {
    int64_t begin = 0;
    int64_t end = 0;
    int64_t step = 0;  ///< that takes it, counted from 0
    int microbatch = 0;
    int input = 0;  ///< of the model
};

/// What a rank did in the step.
struct MeasuredRank {
    int pp = 0;  ///< whose list of actions it ran
    int dp = 0;  ///< replica
    StepMoments moments;
    std::vector<ActionSpan> actions;  ///< beside the list
    std::vector<ReadSpan> reads;      ///< that ended in this step, or between it and the one before
};

/// Times are those of rank 0's clock.
struct MeasuredStep {
    int64_t step = 0;         ///< counted by finished updates
    int64_t clock_error = 0;  ///< times of different ranks are wrong by at most this beside each other; nanoseconds
    std::vector<MeasuredRank> ranks;  ///< by rank

    /// The first moment of any rank and the end of the last action.
    int64_t begin() const;
    int64_t actions_end() const;
};

/// The actions as JSON, for programs:
///   {"step":12,"schedule":"1F1B","num_ranks":2,"num_stages":2,"num_microbatches":4,"clock_error_ms":0.01,
///    "duration_ms":8.4,"actions":[{"rank":0,"stage":0,"microbatch":0,"kind":"F","begin_ms":0.0,"end_ms":1.2,
///    "wait_ms":0.0},...]}
/// By rank, then in its order; times from the begin of the step. "kind" is F, B, I, W, SEND_F, RECV_F, SEND_B, RECV_B
/// or REDUCE_GRAD; "rank" is the rank of the job. Where a card did it, "card_begin_ms" and "card_end_ms" say when.
/// Requires: spans beside the lists of the schedule.
std::string write_timeline(const Schedule& lowered, const MeasuredStep& step);

/// One row for each rank, as draw_timeline (schedule/timeline.hpp) draws a simulated step, but to scale: a column of
/// text is the same time everywhere, and every line has at most `width` of them (at least 40). Of ranks with cards it
/// shows when these computed.
///   0 |F0---F1---F2---..B0-------F3---
///   1 |.....F0---B0-------F1---.......
/// Requires: as write_timeline.
std::string draw_measured(const Schedule& lowered, const MeasuredStep& step, int width = 120);

}  // namespace vpp
