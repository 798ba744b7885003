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

/// Gives whether there is such a parameter.
bool freeze(std::vector<JitParameter>& parameters, const std::string& glob) {
    bool found = false;
    for (JitParameter& parameter : parameters) {
        if (parameter.is_buffer || !is_named_by(parameter, glob)) continue;
        parameter.tensor.set_requires_grad(false);
        found = true;
    }
    return found;
}

bool is_trained(const JitParameter& parameter) {
    return parameter.tensor.requires_grad();
}

}  // namespace

void freeze_parameters(JitGraph& jit, const std::vector<std::string>& globs, const KeyPosition& where) {
    if (globs.empty()) return;
    std::vector<Problem> problems;
    const std::string example = jit.parameters.empty() ? "none" : "'" + printable(jit.parameters.front().name) + "'";
    for (const std::string& glob : globs) {
        if (freeze(jit.parameters, glob)) continue;
        problems.push_back(
            {"model.freeze: no parameter of the model matches '" + printable(glob) + "'; names look like " + example,
             where("model.freeze")});
    }
    if (problems.empty() && std::ranges::none_of(jit.parameters, is_trained)) {
        problems.push_back({"model.freeze leaves no parameter to train; name fewer", where("model.freeze")});
    }
    if (!problems.empty()) throw Error(ErrorKind::Plan, std::move(problems));
}

}  // namespace vpp
