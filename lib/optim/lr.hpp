#pragma once
// The learning rate of a step: a pure function of the plan's numbers, so that a resumed run and a Python script get the
// same bits. Each form is written as it is computed, in double, in this order.
//
// Letters: t = step (finished updates before this one, from 0), T = all steps of the training, W = warmup_steps,
//          R = restart_every, u = t - W, or (t - W) mod R with restarts, base = the group's lr, min = min_lr, g =
//          gamma, D = decay_steps, or when that is 0 the steps until the next restart or the end: R or T - W.
#include <cstdint>
#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace vpp {

/// The values that lr_schedule.kind may have.
std::vector<std::string> lr_schedule_kinds();

/// The learning rate of update `step`. A base of 0 stays 0, since what is not to be trained has no decay to end. While
/// t < W, for every kind: base * (t + 1) / W. From then on:
///
///   constant      base
///   linear        min + (base - min) * (1 - u / D)                     until u = D, then min
///   cosine        min + (base - min) * (0.5 * (1 + cos(pi * u / D)))   until u = D, then min
///   inverse_sqrt  max(min, base * sqrt(w / (t + 1))), w = max(W, 1)
///   wsd           base until t = T - C, then min + (base - min) * ((T - t) / C), and min from t = T on;
///                 C = decay_steps, or a tenth of T (rounded up) when that is 0; at most T - W
///   step          max(min, base * pow(g, floor(u / D)))
///
/// Warm restarts (R > 0) begin linear, cosine and step anew every R steps behind the warm-up; the other kinds have
/// none.
///
/// Units:    steps are optimizer updates; rates have the unit of base_lr.
/// Requires: step >= 0. `total_steps` may be less than warmup_steps: then the warm-up is all there is.
/// Throws:   Error{Plan} at lr_schedule.kind for a kind that is none of these.
/// Source:   cosine and warm restarts: arXiv 1608.03983; inverse_sqrt: arXiv 1706.03762, 5.3, scaled so that it meets
/// base at
///           the end of the warm-up; wsd (warm-up, stable, decay): arXiv 2404.06395, 4, with a linear decay.
double learning_rate(const LrSchedulePlan& plan, double base_lr, int64_t step, int64_t total_steps);

}  // namespace vpp
