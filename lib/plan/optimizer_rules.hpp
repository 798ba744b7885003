#pragma once
// Rules of [optimizer] and its groups, and what is asked of a kind of optimizer before it is made.
#include <string>
#include <vector>

#include "plan/findings.hpp"

namespace vpp {

/// What is to be known of a kind of optimizer.
struct OptimizerKind {
    const char* kind;
    bool has_momentum = false;  ///< momentum, dampening and nesterov mean something
    bool has_averages = false;  ///< betas, eps and amsgrad do
    /// How many tensors of a parameter's size it keeps for each with these values.
    int (*state_tensors)(const OptimizerValues& values) = nullptr;
};

/// Requires: the kind has a row.
const OptimizerKind& optimizer_kind(const std::string& kind);

/// Requires: the kind has a row.
void check_optimizer(const Plan& plan, Findings& findings);

/// The kinds that have a row, in the order of optim/rules.cpp.
std::vector<std::string> kinds_of_optimizer_rules();

}  // namespace vpp
