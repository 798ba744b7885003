#pragma once
// The exit codes of the program for people: manual page and README.
#include <string>
#include <utility>
#include <vector>

namespace vpp {

/// Every exit code with its meaning, smallest first: 0 and one for each ErrorKind (base/error.hpp).
const std::vector<std::pair<int, std::string>>& exit_codes();

}  // namespace vpp
