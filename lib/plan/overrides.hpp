#pragma once
// `--set section.key=value`: puts values into the tree of a plan before it is read, so that an override is checked like
// a line of the file and its errors point into the argument.
#include <string>

#include "plan/document.hpp"
#include "plan/problems.hpp"

namespace vpp {

/// Puts one argument into the tree. Tables on the way are made; entries of arrays must be there:
/// `optimizer.group[0].lr=0.1`, `pipeline.split_points[1]=block3`. The value is read as TOML, else as a text.
/// What is wrong with the argument itself goes to `problems`.
void apply_override(Node& root, const std::string& argument, PlanSources& sources, Problems& problems);

}  // namespace vpp
