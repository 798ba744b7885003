#include "optim/lr.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/suggest.hpp"

namespace vpp {

namespace {

/// The numbers of one call, under the letters of the header.
struct Place {
    double base, min, gamma;
    int64_t step, total, warmup;
    int64_t since_start;  // u
    int64_t decay;        // D, at least 1
};

double constant(const LrSchedulePlan&, const Place& p) {
    return p.base;
}

double linear(const LrSchedulePlan&, const Place& p) {
    if (p.since_start >= p.decay) return p.min;
    return p.min + (p.base - p.min) * (1 - static_cast<double>(p.since_start) / static_cast<double>(p.decay));
}

double cosine(const LrSchedulePlan&, const Place& p) {
    if (p.since_start >= p.decay) return p.min;
    const double angle = std::numbers::pi * static_cast<double>(p.since_start) / static_cast<double>(p.decay);
    return p.min + (p.base - p.min) * (0.5 * (1 + std::cos(angle)));
}

double inverse_sqrt(const LrSchedulePlan&, const Place& p) {
    const auto top = static_cast<double>(std::max<int64_t>(p.warmup, 1));
    return std::max(p.min, p.base * std::sqrt(top / (static_cast<double>(p.step) + 1)));
}

double warmup_stable_decay(const LrSchedulePlan& plan, const Place& p) {
    const int64_t tenth = p.total / 10 + (p.total % 10 != 0);
    const int64_t wanted = plan.decay_steps > 0 ? plan.decay_steps : tenth;
    const int64_t decay = std::min(wanted, std::max<int64_t>(p.total - p.warmup, 0));
    if (p.step >= p.total) return p.min;
    if (p.step < p.total - decay) return p.base;
    return p.min + (p.base - p.min) * (static_cast<double>(p.total - p.step) / static_cast<double>(decay));
}

double by_steps(const LrSchedulePlan&, const Place& p) {
    const auto num_drops = static_cast<double>(p.since_start / p.decay);
    return std::max(p.min, p.base * std::pow(p.gamma, num_drops));
}

struct Form {
    const char* kind;
    double (*rate)(const LrSchedulePlan&, const Place&);
};

constexpr std::array<Form, 6> kForms{{{"constant", constant},
                                      {"linear", linear},
                                      {"cosine", cosine},
                                      {"inverse_sqrt", inverse_sqrt},
                                      {"wsd", warmup_stable_decay},
                                      {"step", by_steps}}};

const Form& form_of(const std::string& kind) {
    std::string list;
    for (const Form& form : kForms) {
        if (kind == form.kind) return form;
        list += (list.empty() ? "" : ", ") + std::string(form.kind);
    }
    throw Error(ErrorKind::Plan, "lr_schedule.kind is unknown (got '" + printable(kind) + "', expected one of " + list +
                                     ")" + did_you_mean(kind, lr_schedule_kinds()));
}

}  // namespace

std::vector<std::string> lr_schedule_kinds() {
    std::vector<std::string> kinds;
    for (const Form& form : kForms) kinds.emplace_back(form.kind);
    return kinds;
}

double learning_rate(const LrSchedulePlan& plan, double base_lr, int64_t step, int64_t total_steps) {
    check(step >= 0, "a step counts from 0");
    const Form& form = form_of(plan.kind);
    if (base_lr == 0) return 0;
    const int64_t warmup = std::max<int64_t>(plan.warmup_steps, 0);
    if (step < warmup) return base_lr * static_cast<double>(step + 1) / static_cast<double>(warmup);
    const int64_t rest = total_steps - std::min(warmup, total_steps);
    const bool restarts = plan.restart_every > 0;
    const int64_t since_start = restarts ? (step - warmup) % plan.restart_every : step - warmup;
    const int64_t longest = restarts ? plan.restart_every : rest;
    const int64_t decay = std::max<int64_t>(plan.decay_steps > 0 ? plan.decay_steps : longest, 1);
    return form.rate(plan, {base_lr, plan.min_lr, plan.gamma, step, total_steps, warmup, since_start, decay});
}

}  // namespace vpp
