#pragma once
// The losses that [loss] can append to a model.
#include <string>
#include <vector>

namespace vpp {

std::vector<std::string> loss_kinds();

}  // namespace vpp
