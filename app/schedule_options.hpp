#pragma once
// The commands `vpp schedule ...`: their arguments, and the functions that run them.
#include <cstdint>
#include <optional>
#include <string>

#include "app/plan_arguments.hpp"

namespace vpp {

/// Which schedule, and what to do with it. Numbers that are not given come from the plan, else from defaults.
struct ScheduleArguments {
    PlanArguments plan;               ///< its config: empty = none
    std::string name;                 ///< --schedule
    std::string file;                 ///< --file, or the FILE of check and convert
    std::optional<int> num_ranks;     ///< --pp
    std::optional<int> per_rank;      ///< --virtual
    std::optional<int> microbatches;  ///< --microbatches
    std::optional<int> group;         ///< --group
    std::optional<double> memory;     ///< --memory, in microbatch activations of a full rank
    std::string costs;                ///< --costs F=1,I=1,W=1,comm=0.1
    bool json = false;
    bool csv = false;                      ///< show: the schedule as a file
    bool lowered = false;                  ///< with csv and convert: with transfers
    bool compute = false;                  ///< convert: without transfers
    int width = 0;                         ///< show: columns; 0 = those of the terminal
    std::string svg;                       ///< show, simulate: where to write the drawing
    std::string trace;                     ///< show, simulate: where to write the trace
    std::string out;                       ///< convert: where to write; empty = stdout. search: where to write the file
    std::optional<std::string> objective;  ///< search: makespan or span
    std::optional<int64_t> moves;          ///< search: how many to try
    std::optional<uint64_t> seed;          ///< search
};

int run_schedule_list(const ScheduleArguments& given);
int run_schedule_show(const ScheduleArguments& given);
int run_schedule_simulate(const ScheduleArguments& given);
int run_schedule_check(const ScheduleArguments& given);
int run_schedule_convert(const ScheduleArguments& given);
int run_schedule_compare(const ScheduleArguments& given);
int run_schedule_search(const ScheduleArguments& given);

}  // namespace vpp
