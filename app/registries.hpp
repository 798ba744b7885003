#pragma once
// The names that modules have registered, for the plan's checker.
#include "plan/keys.hpp"

namespace vpp {

Names registered_names();

}  // namespace vpp
