#pragma once
// One function per command; each returns the exit code and throws what it cannot mend.
#include "app/command_line.hpp"

namespace vpp {

int run_train(const CommandLine& line);
int run_eval(const CommandLine& line);
int run_verify(const CommandLine& line);
int run_inspect(const CommandLine& line);
int run_export(const CommandLine& line);
int run_checkpoint_list(const CommandLine& line);
int run_checkpoint_verify(const CommandLine& line);
int run_checkpoint_show(const CommandLine& line);
int run_checkpoint_prune(const CommandLine& line);
int run_data_order(const CommandLine& line);
int run_schedule_list(const CommandLine& line);
int run_schedule_show(const CommandLine& line);
int run_schedule_simulate(const CommandLine& line);
int run_schedule_check(const CommandLine& line);
int run_schedule_convert(const CommandLine& line);
int run_schedule_compare(const CommandLine& line);
int run_schedule_search(const CommandLine& line);
int run_version();

}  // namespace vpp
