#pragma once
// The stages that the transfers of a schedule are for: those of a plan's model, else stages in a chain.
#include <optional>
#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "program/program.hpp"
#include "schedule/custom.hpp"

namespace vpp {

struct ScheduleStages {
    std::vector<ScheduleEdge> edges;
    CheckOptions options;                    ///< what the plan's transport asks for
    std::string what = "stages in a chain";  ///< for people
    bool of_plan = false;
};

ScheduleStages stages_in_chain(int num_stages);

/// Those of a program that was made of the plan.
ScheduleStages stages_of_program(const Program& program, const Plan& plan);

/// Those of a plan that trains with a schedule of this name.
/// Requires: the plan is resolved. Throws what make_program throws.
ScheduleStages stages_of_plan(Plan plan, const std::string& name);

/// Those that a file is for: of the plan with this file as its schedule, where there is a plan.
/// Throws what make_program throws: the file does not fit the plan.
ScheduleStages stages_of_file(const ScheduleFile& file, const std::optional<Plan>& plan);

/// prove_schedule_file over these stages; for a chain the error of a file with transfers says that it is one.
ProvedSchedule prove_over(const ScheduleFile& file, const ScheduleStages& stages);

/// A lowered schedule as a file, which read_schedule_csv and prove_over take.
/// Throws Error{Plan} where a file cannot say enough.
std::string file_text(const Schedule& lowered, const ScheduleStages& stages);

/// The schedule with transfers, proved.
Schedule lower_over(const Schedule& compute, const ScheduleStages& stages, const ScheduleCosts& costs);

}  // namespace vpp
