#include <iostream>

#include "app/commands/commands.hpp"
#include "app/commands/inspect_text.hpp"
#include "app/planned_program.hpp"
#include "app/registries.hpp"
#include "plan/reader.hpp"
#include "plan/rules.hpp"

namespace vpp {

int run_inspect(const CommandLine& line) {
    Plan plan = load_plan(line.plan.config, line.plan.overrides, registered_names());
    const int world = line.world > 0 ? line.world : natural_world(plan);
    plan = resolve_plan(std::move(plan), world);
    const Program program = make_program(plan);
    if (line.json) {
        std::cout << to_json_text(program) << std::endl;
    } else {
        print_program(std::cout, plan, program);
    }
    return 0;
}

}  // namespace vpp
