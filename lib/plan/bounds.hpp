#pragma once
// The bounds that a TOML text must keep before a parser sees it. Parsers of TOML recurse over dotted keys and nested
// values, so that a text of a few hundred kilobytes can overflow the stack; here nothing recurses.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace vpp {

inline constexpr size_t kPlanLimitBytes = 1 << 20;
inline constexpr int kPlanLimitNesting = 16;  ///< brackets open at once
inline constexpr int kPlanLimitDots = 50;     ///< dots outside texts and comments in one line

/// The first place where a text breaks a bound.
struct BoundsProblem {
    int line = 0;    ///< from 1; 0 = the text as a whole
    int column = 0;  ///< from 1, counts characters
    std::string message;
};

/// Finds what breaks the bounds on size, nesting and dots, is not UTF-8, is a control character other than tab and line
/// end, or is outside ASCII and neither in a string nor in a comment. Linear in the text.
std::optional<BoundsProblem> check_bounds(std::string_view text);

/// The same of a text that need not be TOML: any character may stand in it without quotes.
std::optional<BoundsProblem> check_plain_bounds(std::string_view text);

}  // namespace vpp
