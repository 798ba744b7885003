#pragma once
// Plans resolved from a text and settings, and what the rules say against them.
#include "plan/reader.hpp"
#include "plan/rules.hpp"
#include "unit/plan/plan_texts.hpp"

namespace vpp::test {

using Arguments = std::vector<std::string>;

inline Plan parse_with(const Arguments& arguments, const std::string& text = kShortPlan) {
    return parse_plan(text, "p.toml", arguments, built_names());
}

inline Plan resolve(const Arguments& arguments, int world = 1, const std::string& text = kShortPlan) {
    return resolve_plan(parse_with(arguments, text), world);
}

inline Error error_at(const Arguments& arguments, int world = 1, const std::string& text = kShortPlan) {
    return error_of([&] { resolve(arguments, world, text); });
}

inline std::string problem(const Arguments& arguments, int world = 1, const std::string& text = kShortPlan) {
    return error_at(arguments, world, text).what();
}

}  // namespace vpp::test
