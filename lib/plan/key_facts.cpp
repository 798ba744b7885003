#include "plan/key_facts.hpp"

#include <algorithm>

namespace vpp {

namespace {

/// The type with what else it takes.
std::string full_type_text(const Key& key) {
    if (!key.word.empty()) return type_text(key.type) + " or \"" + key.word + '"';
    if (key.type == KeyType::Path) return "path, relative to the plan";
    if (key.type == KeyType::Files) return "list of paths or table of paths, relative to the plan";
    const bool is_list = key.type == KeyType::NumberList || key.type == KeyType::IntegerList;
    if (is_list && key.list_size > 0) {
        const char* items = key.type == KeyType::NumberList ? " numbers" : " integers";
        return "list of " + std::to_string(key.list_size) + items;
    }
    return type_text(key.type);
}

std::string range_text(const Key& key) {
    const std::string range = key.range.text();
    const std::string reason = key.range_reason.empty() ? "" : "; " + key.range_reason;
    if (key.type == KeyType::Size) return range + ", or bytes with a unit, as \"512 MiB\"";
    const bool is_list = key.type == KeyType::NumberList || key.type == KeyType::IntegerList;
    return range.empty() ? "" : range + (is_list ? " each" : "") + reason;
}

std::string alias_text(const Key& key) {
    std::vector<std::string> aliases;
    for (const auto& [alias, meant] : key.aliases) aliases.push_back(alias + " = " + meant);
    return joined_words(aliases);
}

std::string planned_text(const Key& key, const std::vector<std::string>& there) {
    std::vector<std::string> planned;
    for (const PlannedWord& word : key.planned) {
        if (std::ranges::find(there, word.word) == there.end()) planned.push_back(word.word + " (" + word.reason + ')');
    }
    return joined_words(planned);
}

std::string need_text(const Key& key) {
    if (!key.required) return "";
    const std::string section = section_of(key);
    const bool always = section == "model" || section == "data";
    return (always ? "always" : "in each " + section_header(section)) +
           (key.required_unless.empty() ? "" : ", unless " + key.required_unless + " is written");
}

/// A list with an entry a line.
std::vector<std::string> broken_list(const std::string& name, const std::vector<std::string>& texts) {
    std::vector<std::string> lines = {name + " = ["};
    for (const std::string& text : texts) lines.push_back("  " + toml_quoted(text) + ',');
    lines.emplace_back("]");
    return lines;
}

}  // namespace

std::vector<Fact> key_facts(const Key& key, const Names& names) {
    std::vector<Fact> facts = {{"type", full_type_text(key)}};
    const auto add = [&facts](const char* label, const std::string& text) {
        if (!text.empty()) facts.push_back({label, text});
    };
    if (!key.required && key.type != KeyType::TableList) add("default", default_text(key));
    add("needed", need_text(key));
    add("range", range_text(key));
    const std::vector<std::string> words = own_words(key, names);
    add("words", joined_words(words));
    add("also", alias_text(key));
    add("not yet", planned_text(key, words));
    return facts;
}

std::optional<Value> example_value(const Key& key, const Names& names) {
    if (key.type == KeyType::TableList) return std::nullopt;
    if (key.example) return key.example;
    if (const auto value = default_value(key)) return value;
    const auto& words = usable_words(key, names);
    if (!words.empty()) return Value(words.front());
    return section_of(key) == "optimizer.group" ? default_value(*find_key("optimizer." + last_part(key.name)))
                                                : std::nullopt;
}

std::vector<std::string> example_lines(const Key& key, const Names& names, size_t columns) {
    if (key.type == KeyType::TableList) {
        std::vector<std::string> lines = {section_header(key.name)};
        for (const Key* inner : keys_of(key.name)) {
            if (inner->required) std::ranges::copy(example_lines(*inner, names, columns), std::back_inserter(lines));
        }
        return lines;
    }
    const auto value = example_value(key, names);
    if (!value) return {};
    const std::string line = last_part(key.name) + " = " + toml_text(*value);
    const auto* texts = std::get_if<std::vector<std::string>>(&*value);
    if (texts && line.size() > columns) return broken_list(last_part(key.name), *texts);
    return {line};
}

std::string section_header(const std::string& section) {
    const Key* key = find_key(section);
    return key && key->type == KeyType::TableList ? "[[" + section + "]]" : '[' + section + ']';
}

std::string section_sentence(const std::string& section) {
    const auto& sections = all_sections();
    const auto found = std::ranges::find(sections, section, &std::pair<std::string, std::string>::first);
    return found == sections.end() ? "" : found->second;
}

std::vector<const Key*> keys_of(const std::string& section) {
    std::vector<const Key*> keys;
    for (const Key& key : all_keys()) {
        if (section_of(key) == section) keys.push_back(&key);
    }
    return keys;
}

std::vector<std::string> own_words(const Key& key, const Names& names) {
    std::vector<std::string> words = usable_words(key, names);
    for (const auto& [alias, meant] : key.aliases) std::erase(words, alias);
    return words;
}

std::string joined_words(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
    return text;
}

}  // namespace vpp
