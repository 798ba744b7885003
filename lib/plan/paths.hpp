#pragma once
// Input paths of a plan are written relative to the plan's folder. The Plan holds them resolved; its resolved text has
// them as written, so that the digest of a plan does not depend on where it lies.
#include <string>

namespace vpp {

/// The written path joined to the folder of the plan; an absolute path stays as it is.
std::string resolved_path(const std::string& plan_file, const std::string& written);

/// The inverse: resolved_path(plan_file, written_path(plan_file, p)) == p.
std::string written_path(const std::string& plan_file, const std::string& resolved);

}  // namespace vpp
