#pragma once
// The three numbers that every generated schedule is made from, and their bounds.
#include <cstddef>
#include <cstdint>

namespace vpp {

/// Letters in formulas: P ranks, v stages per rank, M microbatches.
struct ScheduleSize {
    int num_ranks = 1;         ///< P
    int stages_per_rank = 1;   ///< v; the plan's virtual_chunks
    int num_microbatches = 1;  ///< M

    int num_stages() const { return num_ranks * stages_per_rank; }
};

/// Largest number of (stage, microbatch) pairs of a schedule: P v M. Keeps the lists of a mistyped plan out of memory.
inline constexpr int64_t kMostStageMicrobatches = int64_t{1} << 22;

/// How many problems of one schedule are told at once.
inline constexpr size_t kMostProblems = 8;

/// Throws Error{Plan} when a number is below 1 or P v M is above kMostStageMicrobatches; names the nearest valid value.
void check_size(const ScheduleSize& size);

/// For schedules with one stage on each rank.
/// Throws: Error{Plan} when v is not 1; `instead` is the schedule_type that takes v.
void check_one_stage_per_rank(const ScheduleSize& size, const char* name, const char* instead);

}  // namespace vpp
