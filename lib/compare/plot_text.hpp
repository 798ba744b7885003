#pragma once
// A plot for terminals. Every point is the letter of its run and dots lead from one to the next, so that it reads
// without colour; where runs lie on each other their letters take turns.
#include <string>

#include "compare/plot.hpp"
#include "report/text_table.hpp"

namespace vpp {

/// Runs that a plot of letters has room for.
inline constexpr size_t kMostLetters = 26;

/// Title, frame and axes in at most `style.width` columns (at least 40); a sentence instead when no value is finite.
/// Only the first kMostLetters curves are drawn. Requires: the marks of these are one letter each.
std::string plot_text(const Plot& plot, const TextStyle& style);

}  // namespace vpp
