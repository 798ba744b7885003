#include "plan/training_rules.hpp"

#include "plan/lr_rules.hpp"
#include "plan/value.hpp"

namespace vpp {

void check_trains(const Plan& plan) {
    if (plan.pipeline.forward_only) {
        throw Error(ErrorKind::Plan,
                    "pipeline.forward_only = true: this plan evaluates and trains nothing; use vpp eval, or leave the "
                    "key out",
                    plan.where("pipeline.forward_only"));
    }
    if (lr_kind(plan.lr_schedule.kind).no_decay_steps == NoDecaySteps::NoDecay && plan.lr_schedule.decay_steps == 0) {
        throw Error(ErrorKind::Plan,
                    "lr_schedule.kind = " + toml_quoted(plan.lr_schedule.kind) +
                        " needs lr_schedule.decay_steps, the steps from one drop to the next "
                        "(got 0, so that the rate never drops); set it, or take kind \"constant\"",
                    plan.where("lr_schedule.kind"));
    }
}

void check_length(const Plan& plan) {
    if (plan.train.steps || plan.train.epochs) return;
    throw Error(ErrorKind::Plan, "[train] names neither steps nor epochs; write how long to train, as in steps = 200",
                plan.where("train"));
}

}  // namespace vpp
