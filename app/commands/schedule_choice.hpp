#pragma once
// The one schedule that a command line names: generated from flags or a plan, or read from a file.
#include <optional>

#include "app/commands/schedule_stages.hpp"
#include "app/schedule_options.hpp"
#include "plan/plan.hpp"
#include "schedule/csv.hpp"
#include "schedule/simulator.hpp"

namespace vpp {

struct ChosenSchedule {
    Schedule compute;
    Schedule lowered;  ///< over the stages; proved
    ScheduleCosts costs;
    ScheduleStages stages;
    std::optional<ScheduleFile> file;  ///< where it came from, if from a file
};

/// Throws Error{CommandLine, Plan, BadData, MissingInput}. Notes about a file go to stderr.
ChosenSchedule choose_schedule(const ScheduleArguments& given);

/// The resolved plan of --config, if there is one.
std::optional<Plan> schedule_plan(const ScheduleArguments& given);

/// P and M from flags, else from the plan; M is 2 P when neither names it. The stages of a rank are for the caller.
/// Throws Error{CommandLine} when nothing names P.
ScheduleSize ranks_and_microbatches(const ScheduleArguments& given, const std::optional<Plan>& plan);

/// The limit in microbatch activations of a full rank, and the microbatches in a row: from flags, else from the plan.
/// Throws Error{CommandLine} for a limit in bytes, of which only a model says what it lets in.
std::optional<double> activations_limit(const ScheduleArguments& given, const std::optional<Plan>& plan);
std::optional<int> interleave_group(const ScheduleArguments& given, const std::optional<Plan>& plan);

/// Reads a file and prints its notes to stderr. `any_dialect`: converts the old one instead of refusing it.
ScheduleFile open_schedule_file(const std::string& path, bool any_dialect = false);

}  // namespace vpp
