#pragma once
// The plans of the examples are texts with places to fill in.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "examples/examples.hpp"

namespace vpp {

/// Replaces every "{{name}}" by its value, in one walk: values are not looked at again.
/// Requires: every place has a value, and every value has a place.
std::string fill_in(std::string_view text, const std::vector<std::pair<std::string, std::string>>& values);

/// The file plan.toml: {{run_dir}} is a folder for its runs.
ExampleFile plan_file(std::string_view text, const ExampleRequest& request,
                      std::vector<std::pair<std::string, std::string>> more = {});

}  // namespace vpp
