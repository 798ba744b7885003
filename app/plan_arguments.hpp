#pragma once
// What every command on a plan takes: the plan, its overrides, and how much is logged.
#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace CLI {
class App;
}

namespace vpp {

struct PlanArguments {
    std::string config;
    std::vector<std::string> overrides;  ///< --set section.key=value
    std::string log_level = "info";
};

/// The plan as `--config FILE` or as the command's argument, `--set` and `--log-level`.
void add_plan_options(CLI::App& command, PlanArguments& arguments);
/// `--checkpoint` and `--initial-weights`: which weights a command takes.
void add_weights_options(CLI::App& command, std::string& checkpoint, bool& initial_weights);
/// `--set` alone.
void add_override_option(CLI::App& command, PlanArguments& arguments);

/// The plan, resolved for a number of ranks; 0: for the one that it names itself.
/// Throws what load_plan and resolve_plan throw.
Plan resolved_plan(const PlanArguments& arguments, int world = 0);

}  // namespace vpp
