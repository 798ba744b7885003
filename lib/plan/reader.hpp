#pragma once
// Reads a plan strictly: every key known, every value of its type, in its range and one of its words. All problems are
// reported at once, each with line, column and what to write. Rules between keys are in plan/rules.hpp.
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "plan/keys.hpp"
#include "plan/plan.hpp"

namespace vpp {

/// Reads a plan file and applies the `--set` arguments to it in order.
/// Throws: Error{MissingInput} when there is no such file; Error{Plan} with all problems.
Plan load_plan(const std::filesystem::path& path, const std::vector<std::string>& overrides, const Names& names);

/// The same for a text; `file_name` stands in messages, and input paths are relative to its folder.
Plan parse_plan(std::string_view text, const std::string& file_name, const std::vector<std::string>& overrides,
                const Names& names);

}  // namespace vpp
