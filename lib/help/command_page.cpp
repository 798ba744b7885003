#include "help/command_page.hpp"

#include <algorithm>
#include <utility>

namespace vpp {

namespace {

/// Whether a placeholder has the word as one of its alternatives.
bool names(std::string_view placeholder, std::string_view word) {
    const std::string bars = '|' + std::string(placeholder) + '|';
    return bars.find('|' + std::string(word) + '|') != std::string::npos;
}

}  // namespace

ValueKind value_kind(const OptionPage& option, std::string_view placeholder) {
    using enum ValueKind;
    constexpr std::pair<std::string_view, ValueKind> kKinds[] = {
        {"PLAN", Plan},  {"FILE", File},  {"OUT", File},          {"CSV", File},
        {"DIR", Folder}, {"RUN", Folder}, {"KEY=VALUE", Setting}, {"KEY", Key}};
    if (!option.choices.empty()) return Words;
    for (const auto& [word, kind] : kKinds) {
        if (names(placeholder, word)) return kind;
    }
    return Unknown;
}

std::string last_word(std::string_view name) {
    return std::string(name.substr(name.rfind(' ') + 1));
}

std::vector<const CommandPage*> all_commands(const CommandPage& root) {
    std::vector<const CommandPage*> all = {&root};
    for (const CommandPage& below : root.commands) {
        const auto more = all_commands(below);
        all.insert(all.end(), more.begin(), more.end());
    }
    return all;
}

const CommandPage* find_command(const CommandPage& root, std::string_view name) {
    for (const CommandPage* command : all_commands(root)) {
        if (command->name == name) return command;
    }
    return nullptr;
}

std::string usage_line(const CommandPage& command) {
    std::string line = command.name;
    if (!named_options(command).empty()) line += " [OPTIONS]";
    for (const OptionPage* argument : arguments(command)) {
        const std::string word = argument->argument + (argument->repeats ? "..." : "");
        line += argument->required ? ' ' + word : " [" + word + ']';
    }
    return line + (command.commands.empty() ? "" : " COMMAND");
}

std::vector<const OptionPage*> named_options(const CommandPage& command) {
    std::vector<const OptionPage*> found;
    for (const OptionPage& option : command.options) {
        if (!option.names.empty()) found.push_back(&option);
    }
    return found;
}

std::vector<const OptionPage*> arguments(const CommandPage& command) {
    std::vector<const OptionPage*> found;
    for (const OptionPage& option : command.options) {
        if (!option.argument.empty()) found.push_back(&option);
    }
    return found;
}

std::string full_sentence(const OptionPage& option) {
    std::string text = option.sentence;
    const char* separator = ": ";
    for (const std::string& choice : option.choices) {
        text += separator + choice;
        separator = ", ";
    }
    return text + (option.fallback.empty() ? "" : " (default: " + option.fallback + ')');
}

}  // namespace vpp
