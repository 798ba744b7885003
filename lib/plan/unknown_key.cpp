#include "plan/unknown_key.hpp"

#include <algorithm>
#include <cctype>
#include <set>

#include "base/suggest.hpp"
#include "plan/foreign_keys.hpp"
#include "plan/key_facts.hpp"

namespace vpp {

namespace {

constexpr size_t kMostMentions = 6;

std::string lower(std::string text) {
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
}

/// Keys that know the word, in either case of letters.
std::vector<std::string> keys_with_word(const std::string& word, const Names& names) {
    std::vector<std::string> keys;
    for (const Key& key : all_keys()) {
        std::vector<std::string> words = usable_words(key, names);
        for (const PlannedWord& planned : key.planned) words.push_back(planned.word);
        for (const auto& [alias, meant] : key.aliases) words.push_back(alias);
        const bool has = std::ranges::any_of(words, [&](const std::string& one) { return lower(one) == lower(word); });
        if (has) keys.push_back(key.name);
    }
    return keys;
}

std::vector<std::string> keys_that_mention(const std::string& text) {
    std::vector<std::string> keys;
    for (const Key& key : all_keys()) {
        const std::string all = lower(key.name + ' ' + key.sentence);
        if (text.size() > 2 && all.find(lower(text)) != std::string::npos) keys.push_back(key.name);
    }
    if (keys.size() > kMostMentions) keys.resize(kMostMentions);
    return keys;
}

/// The full name that a mistyped one stands for, which may be a key's last part alone; empty when none is near.
std::string nearest_name(const std::string& name) {
    const bool full = name.find('.') != std::string::npos;
    std::vector<std::string> full_names, typed_names;
    const auto add = [&](const std::string& one) {
        full_names.push_back(one);
        typed_names.push_back(full ? one : last_part(one));
    };
    for (const auto& [section, sentence] : all_sections()) add(section);
    for (const Key& key : all_keys()) add(key.name);
    const std::string near = nearest_word(name, typed_names);
    if (near.empty()) return "";
    return full_names[static_cast<size_t>(std::ranges::find(typed_names, near) - typed_names.begin())];
}

/// The keys of other sections that have the name of one that is written as section.name: eval.every ->
/// train.eval_every, else those with that last part, if they are few: "a, b or c".
std::string keys_called(const std::string& section, const std::string& name) {
    constexpr size_t kFew = 3;
    std::vector<std::string> same;
    for (const Key& key : all_keys()) {
        if (last_part(key.name) == last_part(section) + '_' + name) return key.name;
        if (last_part(key.name) == name) same.push_back(key.name);
    }
    if (same.empty() || same.size() > kFew) return "";
    std::string text = same.front();
    for (size_t i = 1; i < same.size(); ++i) text += (i + 1 < same.size() ? ", " : " or ") + same[i];
    return text;
}

}  // namespace

std::vector<std::string> names_in(const std::string& section) {
    std::set<std::string> names;
    const std::string prefix = section.empty() ? "" : section + '.';
    for (const Key& key : all_keys()) {
        if (!key.name.starts_with(prefix)) continue;
        const std::string rest = key.name.substr(prefix.size());
        names.insert(rest.substr(0, rest.find('.')));
    }
    return {names.begin(), names.end()};
}

std::string unknown_answer(const std::string& section, const std::string& name) {
    if (const std::string answer = foreign_key_answer(name, section); !answer.empty()) return "; " + answer;
    if (const std::string same = keys_called(section, name); !same.empty()) return "; did you mean " + same + "?";
    const std::vector<std::string> beside = names_in(section);
    if (const std::string near = did_you_mean(name, beside); !near.empty()) return near;
    for (const std::string& top : names_in("")) {
        for (const std::string& inner : names_in(top)) {
            if (inner == name) return "; did you mean section " + top + '.' + inner + "?";
        }
    }
    return "";
}

std::string unknown_name_answer(const std::string& name, const Names& names) {
    const std::string section = name.find('.') == std::string::npos ? "" : name.substr(0, name.rfind('.'));
    for (const std::string& answer : {foreign_key_answer(last_part(name), section), foreign_key_answer(section)}) {
        if (!answer.empty()) return "; " + answer;
    }
    if (is_section(section)) {
        const std::string near = nearest_word(last_part(name), names_in(section));
        if (!near.empty()) return "; did you mean '" + section + '.' + near + "'?";
    }
    const std::vector<std::string> holders = keys_with_word(name, names);
    if (!holders.empty()) return "; it is a word of " + joined_words(holders);
    if (const std::string near = nearest_name(name); !near.empty()) return "; did you mean '" + near + "'?";
    const std::vector<std::string> mentions = keys_that_mention(name);
    return mentions.empty() ? "; vpp explain lists the sections" : "; these speak of it: " + joined_words(mentions);
}

}  // namespace vpp
