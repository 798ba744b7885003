#include "optim/rules.hpp"

#include "base/error.hpp"
#include "base/suggest.hpp"
#include "optim/optimizer.hpp"

namespace vpp {

namespace detail {

const std::vector<UpdateRule>& update_rules() {
    static const std::vector<UpdateRule> kRules = {
        {"adamw", adam_slots, update_adamw},
        {"adam", adam_slots, update_adam},
        {"sgd", sgd_slots, update_sgd},
    };
    return kRules;
}

const UpdateRule& find_update_rule(const std::string& kind) {
    std::string list;
    for (const UpdateRule& rule : update_rules()) {
        if (kind == rule.kind) return rule;
        list += (list.empty() ? "" : ", ") + std::string(rule.kind);
    }
    throw Error(ErrorKind::Plan, "optimizer.kind is unknown (got '" + printable(kind) + "', expected one of " + list +
                                     ")" + did_you_mean(kind, optimizer_kinds()));
}

}  // namespace detail

std::vector<std::string> optimizer_kinds() {
    std::vector<std::string> kinds;
    for (const detail::UpdateRule& rule : detail::update_rules()) kinds.emplace_back(rule.kind);
    return kinds;
}

}  // namespace vpp
