#pragma once
// A program as a page for people.
#include <ostream>

#include "plan/plan.hpp"
#include "program/program.hpp"

namespace vpp {

void print_program(std::ostream& out, const Plan& plan, const Program& program);

}  // namespace vpp
