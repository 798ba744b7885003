#pragma once
// What shells offer behind a half-typed command line: scripts made from the commands and from the keys of plans.
// Subcommands, options, the words of options, files *.toml where a plan stands, keys behind --set and, after their "=",
// the words of the key.
#include <string>
#include <vector>

#include "help/command_page.hpp"
#include "plan/keys.hpp"

namespace vpp {

/// A name that can be typed behind --set, with what it takes: "train.precision", fp32 bf16 fp16.
struct SettingPage {
    std::string name;
    std::string sentence;
    std::vector<std::string> words;  ///< of a key that takes words, or true and false
};

/// The keys; those of lists of tables with the index of the first: "optimizer.group[0].lr".
std::vector<SettingPage> setting_pages(const Names& names);
/// The names that `vpp explain` takes: sections and keys.
std::vector<std::string> explained_names();

/// The commands as shells complete them: one that starts others has these below it, with its own options too; its own
/// page has the options of the first.
CommandPage with_started_commands(CommandPage root);

/// The scripts. `keys` are the names that a Key stands for (ValueKind::Key).
/// Requires: names and words hold no white space and no quotes but those of sentences.
std::string bash_completion(const CommandPage& root, const std::vector<SettingPage>& settings,
                            const std::vector<std::string>& keys);
std::string zsh_completion(const CommandPage& root, const std::vector<SettingPage>& settings,
                           const std::vector<std::string>& keys);
std::string fish_completion(const CommandPage& root, const std::vector<SettingPage>& settings,
                            const std::vector<std::string>& keys);

}  // namespace vpp
