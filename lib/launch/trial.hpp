#pragma once
// Asking mpirun itself whether it would start the ranks of a job. With -q, as jobs are started, it refuses too many
// ranks, for one, without a word.
#include <optional>
#include <string>
#include <string_view>

#include "launch/mpirun_line.hpp"

namespace vpp {

/// Starts as many ranks in the same way, which only tell their version and end.
/// Returns: nothing when that works; else mpirun's reason in one line.
std::optional<std::string> find_launch_trouble(LaunchRequest request, const HostFacts& host);

namespace detail {

/// What mpirun printed, without rulers and line ends, at most some 300 characters.
std::string condense_words(std::string_view text);

}  // namespace detail

}  // namespace vpp
