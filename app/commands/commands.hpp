#pragma once
// The commands: each function adds one to the command line, or one group of them.
#include "app/command.hpp"

namespace vpp {

void add_init(CLI::App& app, Chosen& chosen);
void add_run(CLI::App& app, Chosen& chosen);
void add_train(CLI::App& app, Chosen& chosen);
void add_eval(CLI::App& app, Chosen& chosen);
void add_inspect(CLI::App& app, Chosen& chosen);
void add_profile(CLI::App& app, Chosen& chosen);
void add_verify(CLI::App& app, Chosen& chosen);
void add_export(CLI::App& app, Chosen& chosen);
void add_checkpoint(CLI::App& app, Chosen& chosen);
void add_data(CLI::App& app, Chosen& chosen);
void add_schedule(CLI::App& app, Chosen& chosen);
void add_explain(CLI::App& app, Chosen& chosen);
void add_schema(CLI::App& app, Chosen& chosen);
void add_completion(CLI::App& app, Chosen& chosen);
void add_man(CLI::App& app, Chosen& chosen);
void add_doctor(CLI::App& app, Chosen& chosen);
void add_report(CLI::App& app, Chosen& chosen);
void add_compare(CLI::App& app, Chosen& chosen);
void add_sweep(CLI::App& app, Chosen& chosen);

/// `vpp --version`.
int run_version();

}  // namespace vpp
