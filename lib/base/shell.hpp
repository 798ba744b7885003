#pragma once
// Command lines as text that a person can paste into a shell.
#include <string>
#include <string_view>
#include <vector>

namespace vpp {

/// The word as a POSIX shell reads it back: as it is, or in single quotes where the shell would change it.
std::string shell_quoted(std::string_view word);

/// Quoted words with a space between them.
std::string shell_line(const std::vector<std::string>& words);

}  // namespace vpp
