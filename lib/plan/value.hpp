#pragma once
// Values of plan keys, outside any file: what the reader hands to a field of the Plan and gets back from it, and how
// they are written as TOML. A number survives writing and reading to the bit.
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "plan/plan.hpp"

namespace vpp {

/// One value: boolean, integer, number, text, list of texts, of integers or of numbers, or table of name -> text.
using Value = std::variant<bool, int64_t, double, std::string, std::vector<std::string>, std::vector<int64_t>,
                           std::vector<double>, NamedTexts>;

/// The value as TOML on one line; a table becomes an inline table.
/// Requires: numbers are finite.
std::string toml_text(const Value& value);

/// A text in double quotes, with TOML's escapes.
std::string toml_quoted(std::string_view text);

}  // namespace vpp
