#pragma once
// Rules of [lr_schedule], and what is asked of a kind of schedule before a rate is computed (optim/lr).
#include <string>
#include <vector>

#include "plan/findings.hpp"

namespace vpp {

/// What lr_schedule.decay_steps = 0 says.
enum class NoDecaySteps {
    Nothing,    ///< the kind does not read the key
    WholeSpan,  ///< decay goes from the warm-up to the end of the training
    OwnSpan,    ///< decay takes as long as the kind has it
    NoDecay     ///< so a training needs the key
};

/// What is to be known of a kind of learning-rate schedule.
struct LrKind {
    const char* kind;
    bool decays = false;     ///< to min_lr
    bool has_gamma = false;  ///< gamma means something
    bool restarts = false;   ///< restart_every begins its decay anew
    NoDecaySteps no_decay_steps = NoDecaySteps::Nothing;

    bool reads_decay_steps() const { return no_decay_steps != NoDecaySteps::Nothing; }
};

/// Requires: the kind has a row.
const LrKind& lr_kind(const std::string& kind);

/// Requires: the kind has a row.
void check_lr_schedule(const Plan& plan, Findings& findings);

/// The kinds that have a row, in the order of optim/lr.cpp.
std::vector<std::string> kinds_of_lr_rules();

}  // namespace vpp
