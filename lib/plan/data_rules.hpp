#pragma once
// Rules of [data]: which keys each kind reads, and what validation needs. Rules of its [[data.transform]] tables:
// plan/transform_rules.
#include <string>
#include <vector>

#include "plan/findings.hpp"

namespace vpp {

/// Requires: the kind has a row.
void check_data(const Plan& plan, Findings& findings);

void check_validation(const Plan& plan, Findings& findings);

/// The kinds that have a row, in the order of data/registry.cpp.
std::vector<std::string> kinds_of_data_rules();

}  // namespace vpp
