#pragma once
// The commands below `vpp data` that need no plan.
#include "app/command.hpp"

namespace vpp {

void add_data_info(CLI::App& group, Chosen& chosen);
void add_data_make(CLI::App& group, Chosen& chosen);

}  // namespace vpp
