#pragma once
// Rules of the [[data.transform]] tables: what can be said without the data (data/field_transform says the rest).
#include "plan/findings.hpp"

namespace vpp {

void check_transforms(const Plan& plan, Findings& findings);

}  // namespace vpp
