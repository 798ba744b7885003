#pragma once
// `vpp explain`: what a plan may say, as a person asks for it. Every line fits into kScreenColumns
// (base/wrapped_text.hpp). All of it is made from the table of keys.
#include <string>

#include "plan/keys.hpp"

namespace vpp {

/// The sections with one line each, and how to ask on.
std::string explain_sections();

/// The page of a key ("pipeline.num_stages"), a section ("pipeline", "[pipeline]"), or of each key whose last part is
/// the question ("lr"). What stands around a name in a plan or behind --set is accepted: "optimizer.group[0].lr",
/// "train.steps=5".
/// Throws: Error{CommandLine} for any other name, with the nearest one or what to write instead.
std::string explain(const std::string& question, const Names& names);

}  // namespace vpp
