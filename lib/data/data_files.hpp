#pragma once
// Which files a plan's data come from.
#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace vpp {

/// Their paths, also of what is read because it lies beside one. Opens none of them.
std::vector<std::string> data_files(const DataPlan& data);

}  // namespace vpp
