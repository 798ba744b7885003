#pragma once
// How schedule_type AUTO came to its schedule, for people: what was found, how good it is at most, how to keep it.
#include <string>
#include <vector>

#include "app/plan_arguments.hpp"
#include "program/program.hpp"

namespace vpp {

/// "found from X in N moves: ...; the best generated one ..." and the lower bound with the gap; no line end.
std::string search_text(const SearchRecord& search, const ScheduleCosts& costs);

/// The lines "search" of `inspect`; empty without AUTO.
std::vector<std::string> search_lines(const PlanArguments& plan, const Program& program);

}  // namespace vpp
