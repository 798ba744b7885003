#include "help/completion.hpp"

#include <algorithm>
#include <utility>

namespace vpp {

namespace {

/// The named options of another command that this one lacks.
void add_options(const CommandPage& from, CommandPage& to) {
    for (const OptionPage* option : named_options(from)) {
        if (std::ranges::find(to.options, option->names, &OptionPage::names) != to.options.end()) continue;
        to.options.push_back(*option);
        to.options.back().argument.clear();  // its own argument stands already
    }
}

void add_started(const CommandPage& root, CommandPage& command) {
    for (const std::string& name : command.starts) {
        const CommandPage* found = find_command(root, root.name + ' ' + name);
        if (!found) continue;
        CommandPage started = *found;
        started.name = command.name + ' ' + name;
        add_options(command, started);
        command.commands.push_back(std::move(started));
    }
    if (!command.starts.empty() && !command.commands.empty()) add_options(command.commands.front(), command);
}

}  // namespace

CommandPage with_started_commands(CommandPage root) {
    const CommandPage plain = root;
    for (CommandPage& command : root.commands) add_started(plain, command);
    return root;
}

std::vector<SettingPage> setting_pages(const Names& names) {
    std::vector<SettingPage> settings;
    for (const Key& key : all_keys()) {
        if (key.type == KeyType::TableList) continue;
        const std::string section = section_of(key);
        const Key* list = find_key(section);
        const bool in_list = list && list->type == KeyType::TableList;
        SettingPage setting{section + (in_list ? "[0]." : ".") + last_part(key.name), key.sentence, {}};
        setting.words = usable_words(key, names);
        if (key.type == KeyType::Boolean) setting.words = {"true", "false"};
        if (!key.word.empty()) setting.words.push_back(key.word);
        settings.push_back(std::move(setting));
    }
    return settings;
}

std::vector<std::string> explained_names() {
    std::vector<std::string> all;
    for (const auto& [section, sentence] : all_sections()) all.push_back(section);
    for (const Key& key : all_keys()) {
        if (key.type != KeyType::TableList) all.push_back(key.name);
    }
    return all;
}

}  // namespace vpp
