#pragma once
// Rules of mode = "MANUAL_EAGER" and its [[pipeline.stage]] tables: what can be said without data and model files.
#include "plan/findings.hpp"

namespace vpp {

/// The mode and its tables; names, files and modules; who makes what each stage takes. Inputs that no table makes are
/// data fields, which only the data knows.
void check_stage_tables(const Plan& plan, Findings& findings);

/// Requires: mesh.pp is resolved.
void check_stage_count(const Plan& plan, Findings& findings);

}  // namespace vpp
