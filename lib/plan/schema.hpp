#pragma once
// The plan as a JSON Schema (draft 2020-12), for editors that know TOML by schema (taplo, Even Better TOML). It says
// what the reader says about one key at a time: types, words, ranges, defaults, sentences, unknown keys. Rules between
// keys (plan/rules.hpp) are left to vpp.
#include <string>

#include "plan/keys.hpp"

namespace vpp {

/// The schema as JSON text, indented, with a line end. The same table and names give the same text.
std::string plan_schema(const Names& names);

}  // namespace vpp
