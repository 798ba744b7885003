// vpp schema: the plan as a JSON Schema.
#include "plan/schema.hpp"

#include <CLI/CLI.hpp>

#include <iostream>

#include "app/commands/commands.hpp"
#include "app/registries.hpp"

namespace vpp {

void add_schema(CLI::App& app, Chosen& chosen) {
    CLI::App& command = add_command(app, "schema", "print a JSON Schema of plans, for editors that know TOML by schema",
                                    "vpp schema > plan.schema.json");
    command.callback([&chosen] {
        chosen = [] {
            std::cout << plan_schema(registered_names()) << std::flush;
            return 0;
        };
    });
}

}  // namespace vpp
