#include "graph/jit_freeze.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/glob.hpp"

namespace vpp {

namespace {

bool is_named_by(const JitParameter& parameter, const std::string& glob) {
    return glob_matches(glob, parameter.name) ||
           std::ranges::any_of(parameter.aliases, [&](const std::string& name) { return glob_matches(glob, name); });
}

/// "!GLOB" takes out again what globs before it name.
bool is_exception(const std::string& glob) {
    return glob.starts_with('!');
}

std::string without_mark(const std::string& glob) {
    return is_exception(glob) ? glob.substr(1) : glob;
}

/// The last glob that names it decides.
bool is_frozen(const JitParameter& parameter, const std::vector<std::string>& globs) {
    const auto last = std::ranges::find_if(globs.rbegin(), globs.rend(), [&](const std::string& glob) {
        return is_named_by(parameter, without_mark(glob));
    });
    return last != globs.rend() && !is_exception(*last);
}

bool is_trained(const JitParameter& parameter) {
    return parameter.tensor.requires_grad();
}

}  // namespace

void freeze_parameters(JitGraph& jit, const std::vector<std::string>& globs, const KeyPosition& where) {
    if (globs.empty()) return;
    std::vector<Problem> problems;
    const std::string example = jit.parameters.empty() ? "none" : "'" + printable(jit.parameters.front().name) + "'";
    std::vector<JitParameter*> parameters;
    for (JitParameter& parameter : jit.parameters) {
        if (!parameter.is_buffer) parameters.push_back(&parameter);
    }
    for (const std::string& glob : globs) {
        const auto is_named = [&](const JitParameter* parameter) {
            return is_named_by(*parameter, without_mark(glob));
        };
        if (std::ranges::any_of(parameters, is_named)) continue;
        problems.push_back(
            {"model.freeze: no parameter of the model matches '" + printable(glob) + "'; names look like " + example,
             where("model.freeze")});
    }
    if (is_exception(globs.front())) {
        problems.push_back(
            {"model.freeze: '" + printable(globs.front()) +
                 "' takes nothing out, since no glob comes before it; begin with \"*\" to train it alone",
             where("model.freeze")});
    }
    for (JitParameter* parameter : parameters) {
        if (is_frozen(*parameter, globs)) parameter->tensor.set_requires_grad(false);
    }
    if (problems.empty() && std::ranges::none_of(jit.parameters, is_trained)) {
        problems.push_back({"model.freeze leaves no parameter to train; name fewer", where("model.freeze")});
    }
    if (!problems.empty()) throw Error(ErrorKind::Plan, std::move(problems));
}

}  // namespace vpp
