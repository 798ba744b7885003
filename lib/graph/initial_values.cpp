#include "graph/initial_values.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/few.hpp"
#include "base/glob.hpp"
#include "base/random.hpp"

namespace vpp {

namespace {

constexpr size_t kMostNames = 3;

}  // namespace

bool has_data(const at::Tensor& parameter, bool is_buffer) {
    return is_buffer || parameter.numel() <= 1 ||
           !std::ranges::all_of(parameter.strides(), [](int64_t stride) { return stride == 0; });
}

const InitRule* rule_for(const std::vector<InitRule>& rules, const std::string& name,
                         const std::vector<std::string>& aliases) {
    const auto found = std::ranges::find_if(rules, [&](const InitRule& rule) {
        return any_glob_matches(rule.match, name) ||
               std::ranges::any_of(aliases, [&](const auto& alias) { return any_glob_matches(rule.match, alias); });
    });
    return found == rules.end() ? nullptr : &*found;
}

at::Tensor filled(const at::Tensor& parameter, const InitRule& rule, uint64_t seed, const std::string& name) {
    at::Tensor tensor = at::empty(parameter.sizes(), parameter.options().requires_grad(false));
    at::Generator generator = at::detail::createCPUGenerator(name_key(seed, name));
    if (rule.kind == "normal") tensor.normal_(rule.mean, rule.std, generator);
    if (rule.kind == "uniform") tensor.uniform_(rule.low, rule.high, generator);
    if (rule.kind == "zeros") tensor.zero_();
    if (rule.kind == "ones") tensor.fill_(1);
    return tensor;
}

std::vector<Problem> check_init_rules(const Plan& plan, const Graph& graph) {
    std::vector<Problem> problems;
    const std::vector<InitRule>& rules = plan.model.init;
    for (size_t i = 0; i < rules.size(); ++i) {
        const bool takes = std::ranges::any_of(graph.parameters, [&](const GraphParameter& parameter) {
            return !parameter.is_buffer && rule_for(rules, parameter.name, parameter.aliases) == &rules[i];
        });
        if (takes) continue;
        const std::string key = "model.init[" + std::to_string(i) + "].match";
        const std::string example =
            graph.parameters.empty() ? "" : "; names look like '" + printable(graph.parameters.front().name) + "'";
        problems.push_back({key + ": no parameter is left for this rule" + example, plan.where(key)});
    }
    return problems;
}

void refuse_without_values(const Plan& plan, const std::vector<std::string>& names) {
    if (names.empty()) return;
    throw Error(ErrorKind::Plan,
                "the model file has no values for " + few_names_text(names, kMostNames) +
                    "; add [[model.init]] tables that match parameters, or name a file of weights in model.init_from",
                plan.where("model.init"));
}

void check_have_values(const Plan& plan, const Graph& graph) {
    if (!plan.model.init_from.empty()) return;
    std::vector<std::string> unfilled;
    for (const GraphParameter& parameter : graph.parameters) {
        const bool is_filled =
            !parameter.is_buffer && rule_for(plan.model.init, parameter.name, parameter.aliases) != nullptr;
        if (!parameter.has_data && !is_filled) unfilled.push_back(parameter.name);
    }
    refuse_without_values(plan, unfilled);
}

}  // namespace vpp
