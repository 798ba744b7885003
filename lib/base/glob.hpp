#pragma once
// Globs over fully qualified names: '*' any run of characters (dots too), '?' one character, all else literal.
#include <string>
#include <string_view>
#include <vector>

namespace vpp {

/// Whether the whole `name` matches `pattern`.
bool glob_matches(std::string_view pattern, std::string_view name);
/// Whether one of the patterns does.
bool any_glob_matches(const std::vector<std::string>& patterns, std::string_view name);

}  // namespace vpp
