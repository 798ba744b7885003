#include "plan/lr_rules.hpp"

#include <functional>

#include "plan/kind_rows.hpp"
#include "plan/value.hpp"

namespace vpp {

namespace {

const std::vector<LrKind>& lr_table() {
    using enum NoDecaySteps;
    static const std::vector<LrKind> kKinds{
        {.kind = "constant"},
        {.kind = "linear", .decays = true, .restarts = true, .no_decay_steps = WholeSpan},
        {.kind = "cosine", .decays = true, .restarts = true, .no_decay_steps = WholeSpan},
        {.kind = "inverse_sqrt", .decays = true},
        {.kind = "wsd", .decays = true, .no_decay_steps = OwnSpan},
        {.kind = "step", .decays = true, .has_gamma = true, .restarts = true, .no_decay_steps = NoDecay},
    };
    return kKinds;
}

/// "a, b and c": the kinds of which a member of the row is true, `last` before the last one.
template <typename Member>
std::string those_that(Member member, const std::string& last) {
    const std::vector<std::string> kinds = kinds_where(lr_table(), std::mem_fn(member));
    std::string text;
    for (size_t i = 0; i < kinds.size(); ++i) {
        text += (i == 0 ? "" : i + 1 == kinds.size() ? last : ", ") + kinds[i];
    }
    return text;
}

/// A rate below the one that decay ends at would rise to it. A rate of 0 stays 0.
void check_rates(const Plan& plan, Findings& findings) {
    if (!lr_kind(plan.lr_schedule.kind).decays) return;  // check_read_keys says that it has no min_lr
    const double own = plan.optimizer.values.lr, min = plan.lr_schedule.min_lr;
    const std::vector<OptimizerGroup>& groups = plan.optimizer.groups;
    if (min > own && (own != 0 || groups.empty())) {
        findings.add("lr_schedule.min_lr", "lr_schedule.min_lr is above optimizer.lr (got " + toml_text(min) + " and " +
                                               toml_text(own) + ')');
    }
    for (size_t i = 0; i < groups.size(); ++i) {
        const double lr = groups[i].values.lr;
        if (lr == own || lr == 0 || lr >= min) continue;
        const std::string key = "optimizer.group[" + std::to_string(i) + "].lr";
        findings.add(key, key + " is below lr_schedule.min_lr (got " + toml_text(lr) + " and " + toml_text(min) +
                              "), so decay would raise it; lower min_lr, or set a higher lr");
    }
}

/// What the kind does not look at. Who names the kind may try others with the same plan.
void check_read_keys(const Plan& plan, Findings& findings) {
    const LrSchedulePlan& schedule = plan.lr_schedule;
    const LrSchedulePlan usual;
    const LrKind& kind = lr_kind(schedule.kind);
    if (schedule.restart_every > 0 && !kind.restarts) {
        findings.add("lr_schedule.restart_every",
                     "lr_schedule.restart_every begins a decay anew, and this kind has none that could (got kind " +
                         toml_quoted(kind.kind) + ", expected " + those_that(&LrKind::restarts, " or ") +
                         "); leave it out");
    }
    if (plan.positions.contains("lr_schedule.kind")) return;
    const auto is_for = [&](const std::string& key, const std::string& kinds) {
        findings.add(key, key + " is for " + kinds + ", and lr_schedule.kind is not set, so it is " +
                              toml_quoted(kind.kind) + "; set it, or leave this out");
    };
    if (schedule.min_lr != usual.min_lr && !kind.decays) is_for("lr_schedule.min_lr", "kinds that decay");
    if (schedule.gamma != usual.gamma && !kind.has_gamma) {
        is_for("lr_schedule.gamma", those_that(&LrKind::has_gamma, " and "));
    }
    if (schedule.decay_steps != usual.decay_steps && !kind.reads_decay_steps()) {
        is_for("lr_schedule.decay_steps", those_that(&LrKind::reads_decay_steps, " and "));
    }
}

}  // namespace

const LrKind& lr_kind(const std::string& kind) {
    return row_of(lr_table(), kind);
}

void check_lr_schedule(const Plan& plan, Findings& findings) {
    check_rates(plan, findings);
    check_read_keys(plan, findings);
}

std::vector<std::string> kinds_of_lr_rules() {
    return kinds_of(lr_table());
}

}  // namespace vpp
