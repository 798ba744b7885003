#include "plan/optimizer_rules.hpp"

#include "plan/kind_rows.hpp"
#include "plan/value.hpp"

namespace vpp {

namespace {

int adam_state_tensors(const OptimizerValues& values) {
    return values.amsgrad ? 3 : 2;
}

int sgd_state_tensors(const OptimizerValues& values) {
    return values.momentum > 0 ? 1 : 0;
}

const std::vector<OptimizerKind>& optimizer_table() {
    static const std::vector<OptimizerKind> kKinds{
        {.kind = "adamw", .has_averages = true, .state_tensors = adam_state_tensors},
        {.kind = "adam", .has_averages = true, .state_tensors = adam_state_tensors},
        {.kind = "sgd", .has_momentum = true, .state_tensors = sgd_state_tensors},
    };
    return kKinds;
}

/// The values of the optimizer or of a group; what they `inherit` was checked where it was written.
void check_values(const OptimizerValues& values, const OptimizerValues& inherited, const OptimizerKind& kind,
                  const std::string& section, Findings& findings) {
    if (values == inherited) return;
    if (values.nesterov && (values.momentum == 0 || values.dampening != 0)) {
        findings.add(section + ".nesterov", section + ".nesterov needs momentum and no dampening (got momentum " +
                                                toml_text(values.momentum) + " and dampening " +
                                                toml_text(values.dampening) + ')');
    }
    const auto check_one = [&](const char* key, bool is_set, bool has_meaning) {
        if (!is_set || has_meaning) return;
        findings.add(section + '.' + key, section + '.' + key + " has no meaning for " + kind.kind);
    };
    check_one("momentum", values.momentum != inherited.momentum, kind.has_momentum);
    check_one("dampening", values.dampening != inherited.dampening, kind.has_momentum);
    check_one("nesterov", values.nesterov != inherited.nesterov, kind.has_momentum);
    check_one("betas", values.beta1 != inherited.beta1 || values.beta2 != inherited.beta2, kind.has_averages);
    check_one("eps", values.eps != inherited.eps, kind.has_averages);
    check_one("amsgrad", values.amsgrad != inherited.amsgrad, kind.has_averages);
}

/// A group's momentum may be what the optimizer's own dampening is for. Who names a momentum of 0 may try others.
void check_dampening(const Plan& plan, Findings& findings) {
    const OptimizerPlan& optimizer = plan.optimizer;
    if (!optimizer_kind(optimizer.kind).has_momentum) return;  // check_values says what has no meaning
    const OptimizerValues& own = optimizer.values;
    const auto check_one = [&](const OptimizerValues& values, const std::string& section) {
        if (values.dampening == 0 || values.momentum != 0 || plan.positions.contains(section + ".momentum")) return;
        findings.add(section + ".dampening", section + ".dampening needs momentum (got dampening " +
                                                 toml_text(values.dampening) + " and momentum " +
                                                 toml_text(values.momentum) + ')');
    };
    bool is_inherited = false;
    for (size_t i = 0; i < optimizer.groups.size(); ++i) {
        const OptimizerValues& values = optimizer.groups[i].values;
        if (values.dampening != own.dampening) {
            check_one(values, "optimizer.group[" + std::to_string(i) + ']');
        } else if (values.momentum != 0) {
            is_inherited = true;
        }
    }
    if (!is_inherited) check_one(own, "optimizer");
}

}  // namespace

const OptimizerKind& optimizer_kind(const std::string& kind) {
    return row_of(optimizer_table(), kind);
}

void check_optimizer(const Plan& plan, Findings& findings) {
    const OptimizerPlan& optimizer = plan.optimizer;
    const OptimizerKind& kind = optimizer_kind(optimizer.kind);
    check_values(optimizer.values, {}, kind, "optimizer", findings);
    for (size_t i = 0; i < optimizer.groups.size(); ++i) {
        const std::string section = "optimizer.group[" + std::to_string(i) + ']';
        const OptimizerGroup& group = optimizer.groups[i];
        if (group.match.empty()) {
            findings.add(section + ".match", section + ".match is empty; name parameters, or \"*\" for all");
        }
        check_values(group.values, optimizer.values, kind, section, findings);
    }
    check_dampening(plan, findings);
}

std::vector<std::string> kinds_of_optimizer_rules() {
    return kinds_of(optimizer_table());
}

}  // namespace vpp
