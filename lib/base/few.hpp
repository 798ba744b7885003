#pragma once
// Lists, which may be long, for messages.
#include <cstddef>
#include <string>
#include <vector>

namespace vpp {

/// The first `most` of them: "a, b and 3 more".
std::string few_text(const std::vector<std::string>& texts, size_t most);

/// The same of names, in quotes and printable: "'a', 'b' and 3 more".
std::string few_names_text(const std::vector<std::string>& names, size_t most);

/// "rank 0" or "ranks 0, 1".
std::string ranks_text(const std::vector<int>& ranks);

}  // namespace vpp
