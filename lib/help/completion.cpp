#include "help/completion.hpp"

namespace vpp {

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
