#include <CLI/CLI.hpp>

#include <iostream>

#include "app/commands/commands.hpp"
#include "app/commands/inspect_text.hpp"
#include "app/plan_arguments.hpp"
#include "app/planned_program.hpp"

namespace vpp {

namespace {

struct InspectArguments {
    PlanArguments plan;
    int world = 0;  ///< 0 = what the plan names
    bool json = false;
};

int run_inspect(const InspectArguments& arguments) {
    const Plan plan = resolved_plan(arguments.plan, arguments.world);
    const Program program = make_program(plan);
    if (arguments.json) {
        std::cout << to_json_text(program) << std::endl;
    } else {
        print_program(std::cout, plan, program);
    }
    return 0;
}

}  // namespace

void add_inspect(CLI::App& app, Chosen& chosen) {
    const auto arguments = std::make_shared<InspectArguments>();
    CLI::App& command = add_command(app, "inspect", "show what would happen: stages, edges, memory, schedule",
                                    "vpp inspect plan.toml --world 64");
    add_plan_options(command, arguments->plan);
    command.add_option("--world", arguments->world, "number of ranks to show it for; default: what the plan names")
        ->check(CLI::Range(1, 1 << 20));
    command.add_flag("--json", arguments->json, "the whole program as JSON");
    command.callback([arguments, &chosen] { chosen = [arguments] { return run_inspect(*arguments); }; });
}

}  // namespace vpp
