#pragma once
// Text that is safe in HTML, XML and SVG, whatever it holds. A page is put together from literals of the program and
// from what these functions give, and from nothing else.
#include <string>
#include <string_view>

namespace vpp {

/// The text for an element or a quoted attribute: markup is escaped; bytes that are no UTF-8, control bytes but line
/// ends and tabs, and characters that turn the direction of writing become U+FFFD.
std::string escaped(std::string_view text);

/// A coordinate, with at most two decimals: "12", "0.25".
std::string coordinate(double value);

}  // namespace vpp
