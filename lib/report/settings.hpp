#pragma once
// The settings of runs as flat lists, and where they differ.
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace vpp {

/// "pipeline.num_stages" -> "4", in the order of the file; texts without quotes, lists on one line.
using Settings = std::vector<std::pair<std::string, std::string>>;

/// The settings of a resolved plan.toml. Throws: Error{Plan} when the text is no TOML.
Settings settings_from_plan(const std::string& plan_text);

/// The value of a key; empty when it is not there.
std::optional<std::string> setting(const Settings& settings, const std::string& key);
/// A whole number of at least 1; empty for anything else.
std::optional<int> count_setting(const Settings& settings, const std::string& key);

/// A key with the value of each run, empty where a run does not have it.
struct Difference {
    std::string key;
    std::vector<std::optional<std::string>> values;
};

/// The keys whose values are not the same in all runs, in the order of the first run that has them. run.dir is left
/// out: it always differs and says nothing.
std::vector<Difference> differences(const std::vector<Settings>& runs);

}  // namespace vpp
