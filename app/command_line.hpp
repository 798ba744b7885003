#pragma once
// The command line as values. CLI11 parses; its error codes and texts become vpp's.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "app/checkpoint_options.hpp"
#include "app/schedule_options.hpp"
#include "engine/evaluation_request.hpp"
#include "engine/export_request.hpp"
#include "engine/verify_request.hpp"

namespace vpp {

/// What every command on a plan takes.
struct PlanArguments {
    std::string config;
    std::vector<std::string> overrides;  ///< --set section.key=value
    std::string log_level = "info";
};

struct CommandLine {
    std::string command;  ///< "train", "data order", "schedule show" ..; empty: help was printed
    PlanArguments plan;
    ScheduleArguments schedule;
    CheckpointArguments checkpoint;
    EvaluationRequest evaluation;
    ExportRequest export_request;
    VerifyRequest verify;
    int world = 0;       ///< inspect: 0 = what the plan names
    bool json = false;   ///< inspect, verify, eval, export
    int64_t steps = 10;  ///< verify, data order
};

/// Throws Error{CommandLine} with one line that says what to type. Prints help to stdout when asked.
CommandLine parse_command_line(int argc, char** argv);

}  // namespace vpp
