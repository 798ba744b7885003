#pragma once
// What a person might change in a plan, and what that would bring: rules over an Inspection, one row each (advice.cpp).
#include <string>
#include <vector>

#include "program/inspection.hpp"

namespace vpp {

struct Advice {
    const char* rule;  ///< its name in the table, for --json and tests
    std::string text;  ///< what is seen, then what to do; one paragraph
};

/// What all rules say, in the order of the table.
std::vector<Advice> advise(const Inspection& inspection);

/// The names of the rules.
std::vector<std::string> advice_rules();

}  // namespace vpp
