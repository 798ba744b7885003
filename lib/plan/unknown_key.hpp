#pragma once
// Answers to names that no key has.
#include <string>
#include <vector>

#include "plan/keys.hpp"

namespace vpp {

/// The names that may stand directly in a section (the root is ""): keys, and sections below it.
std::vector<std::string> names_in(const std::string& section);

/// For a name that is not in `section`: "; " and what to write instead of a name of other trainers, or "; did you mean
/// ...?" with the same name in another section, a near name beside it, or a section. Empty when nothing is near.
std::string unknown_answer(const std::string& section, const std::string& name);

/// For a word that a person typed where a key was asked for: what unknown_answer says; else the nearest of all full
/// names, the keys that have it among their words, or those whose sentences speak of it.
std::string unknown_name_answer(const std::string& name, const Names& names);

}  // namespace vpp
