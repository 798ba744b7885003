#pragma once
// Reads one node of a plan as the value of one key: type, range, words. What is wrong goes to the problems, with what
// was found, what is expected and, where it is near, the remedy.
#include <optional>

#include "plan/document.hpp"
#include "plan/keys.hpp"
#include "plan/problems.hpp"

namespace vpp {

/// The value of the key, paths as written; empty when something is wrong with it. `name` is the key as people see it:
/// "optimizer.group[0].lr".
std::optional<Value> read_value(const Key& key, const std::string& name, const Node& node, const Names& names,
                                Problems& problems);

}  // namespace vpp
