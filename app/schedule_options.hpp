#pragma once
// The options of `vpp schedule ...` as values.
#include <cstdint>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace vpp {

struct PlanArguments;

/// Which schedule, and what to do with it. Numbers that are not given come from the plan, else from defaults.
struct ScheduleArguments {
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

/// Adds `schedule` with its subcommands; a new one is a row here, one in main.cpp and a function in app/commands.
void add_schedule_commands(CLI::App& app, ScheduleArguments& schedule, PlanArguments& plan);

}  // namespace vpp
