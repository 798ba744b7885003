#pragma once
// The commands of a program as plain values: names, sentences, options, examples. `app` makes them from its parser; the
// help of a command, the manual page and the completion of shells are made from them, so that none of these can say
// anything else than the parser.
#include <string>
#include <string_view>
#include <vector>

namespace vpp {

/// One option, or one argument without a name, or both at once (`--config PLAN` and `PLAN`).
struct OptionPage {
    std::vector<std::string> names;    ///< "-n", "--config"; empty: an argument only
    std::string value;                 ///< what stands for its value: "FILE", "KEY=VALUE"; empty: a flag
    std::string argument;              ///< what stands for it as an argument; empty: it is none
    std::string sentence;              ///< without a full stop
    std::string fallback;              ///< its default; empty: none is shown
    std::vector<std::string> choices;  ///< the words that it takes; empty: not a matter of words
    bool required = false;
    bool repeats = false;  ///< may be given, or stand, more than once
};

/// One command with those below it.
struct CommandPage {
    std::string name;                   ///< with all that stands before it: "vpp schedule show"
    std::string sentence;               ///< without a full stop
    std::vector<std::string> examples;  ///< whole command lines
    std::vector<OptionPage> options;    ///< arguments among them
    std::vector<CommandPage> commands;
    /// Commands of the program that this one starts, the first where none is named: "train". Their options may follow.
    std::vector<std::string> starts = {};
};

/// What a shell can offer where a value is typed.
enum class ValueKind {
    Unknown,  ///< nothing is known
    Words,    ///< OptionPage::choices
    Plan,     ///< a file *.toml
    File,
    Folder,
    Setting,  ///< section.key=value
    Key,      ///< section.key or section
};

/// The kind by the words of the placeholder: PLAN, FILE, OUT or CSV, DIR, KEY=VALUE, KEY; of "PLAN|DIR" the first of
/// these.
ValueKind value_kind(const OptionPage& option, std::string_view placeholder);
inline ValueKind value_kind(const OptionPage& option) {
    return value_kind(option, option.value.empty() ? option.argument : option.value);
}

/// The last word of a name: "show" of "vpp schedule show".
std::string last_word(std::string_view name);

/// The command and all below it, each before those below it.
std::vector<const CommandPage*> all_commands(const CommandPage& root);

/// The command of that name below `root`, `root` itself too; nullptr when there is none.
const CommandPage* find_command(const CommandPage& root, std::string_view name);

/// "vpp train [OPTIONS] PLAN", "vpp schedule COMMAND"
std::string usage_line(const CommandPage& command);

/// The options that have names, and those that can be arguments.
std::vector<const OptionPage*> named_options(const CommandPage& command);
std::vector<const OptionPage*> arguments(const CommandPage& command);

/// The sentence with what else is to say: choices, default.
std::string full_sentence(const OptionPage& option);

}  // namespace vpp
