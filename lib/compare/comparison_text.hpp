#pragma once
// Runs side by side for terminals: who they are, the settings that differ beside the results, a plot.
#include <string>

#include "compare/comparison.hpp"
#include "report/text_table.hpp"

namespace vpp {

/// The runs with their letters, then a row a run: its settings that differ, its state, its results. Many settings have
/// a table of their own, with a row each.
std::string comparison_table(const Comparison& comparison, const TextStyle& style);

/// That table, then the curves of a number (compare/run_curves.hpp) and what they lack.
std::string comparison_text(const Comparison& comparison, const std::string& curve, const TextStyle& style);

}  // namespace vpp
