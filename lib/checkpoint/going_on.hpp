#pragma once
// How a person goes on with a run that ended before its last step.
#include <string>

namespace vpp {

/// The same command, with what else it takes where checkpoint.resume is not "auto" and it would begin anew, or
/// from the checkpoint that it names.
std::string how_to_go_on(const std::string& resume);

}  // namespace vpp
