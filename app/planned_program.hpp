#pragma once
// The program of a plan in this process, for commands that look at it without running it.
#include <vector>

#include "device/cards.hpp"
#include "plan/plan.hpp"
#include "program/program.hpp"

namespace vpp {

/// The cards of this process that ranks of the plan may compute on. Says where CUDA does not start.
std::vector<Card> cards_for(const Plan& plan);

/// What rank 0 of a job would prepare with these cards: the same bytes.
/// Requires: a plan resolved for its world.
/// Throws:   what prepare throws (program/prepare.hpp), and Error{Plan} for rules between plan and model.
Program make_program(const Plan& plan, const std::vector<Card>& cards);
Program make_program(const Plan& plan);  ///< with cards_for(plan)

}  // namespace vpp
