#include "app/plan_arguments.hpp"

#include <CLI/CLI.hpp>

#include "app/registries.hpp"
#include "plan/reader.hpp"
#include "plan/rules.hpp"

namespace vpp {

void add_override_option(CLI::App& command, PlanArguments& arguments) {
    command.add_option("--set", arguments.overrides, "override a key of the plan: section.key=value; may be repeated")
        ->type_name("KEY=VALUE")
        ->take_all()
        ->allow_extra_args(false);
}

void add_plan_options(CLI::App& command, PlanArguments& arguments) {
    command.add_option("--config,plan", arguments.config, "the plan (TOML)")->required()->type_name("PLAN");
    add_override_option(command, arguments);
    command.add_option("--log-level", arguments.log_level, "what goes to the log on stderr")
        ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "off"}))
        ->capture_default_str();
}

void add_weights_options(CLI::App& command, std::string& checkpoint, bool& initial_weights) {
    CLI::Option* option =
        command.add_option("--checkpoint", checkpoint, "a checkpoint; default: the newest of run.dir")
            ->type_name("DIR");
    command
        .add_flag("--initial-weights", initial_weights,
                  "what a training would begin with: the weights of the model file, or of model.init_from")
        ->excludes(option);
}

Plan resolved_plan(const PlanArguments& arguments, int world) {
    Plan plan = load_plan(arguments.config, arguments.overrides, registered_names());
    const int ranks = world > 0 ? world : natural_world(plan);
    return resolve_plan(std::move(plan), ranks);
}

}  // namespace vpp
