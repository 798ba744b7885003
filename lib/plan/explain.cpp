#include "plan/explain.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/wrapped_text.hpp"
#include "plan/key_facts.hpp"
#include "plan/unknown_key.hpp"

namespace vpp {

namespace {

constexpr size_t kIndent = 2;
constexpr size_t kFactColumn = 12;
constexpr size_t kSentenceColumn = 31;
constexpr size_t kSectionColumn = 24;
constexpr size_t kLongestShownDefault = 16;

/// "[[optimizer.group]]", "optimizer.group[0]" and "optimizer.group = 1" are all optimizer.group.
std::string plain_name(std::string text) {
    text = text.substr(0, text.find('='));
    std::string name;
    for (size_t at = 0; at < text.size(); ++at) {
        const bool index = text[at] == '[' && at > 0 && text[at - 1] != '[';
        if (index) at = std::min(text.find(']', at), text.size() - 1);
        if (!index && text[at] != '[' && text[at] != ']' && text[at] != ' ') name += text[at];
    }
    return name;
}

std::string example_text(const Key& key, const Names& names) {
    const std::vector<std::string> lines = example_lines(key, names, kScreenColumns - kFactColumn);
    if (lines.empty()) return "";
    std::vector<std::string> all = lines;
    if (key.type != KeyType::TableList) all.insert(all.begin(), section_header(section_of(key)));
    std::string text = "\n";
    for (const std::string& line : all) text += std::string(kIndent * 2, ' ') + line + '\n';
    return text;
}

std::string explain_key(const Key& key, const Names& names) {
    std::string text = key.name + '\n' + indented_text(key.sentence, kIndent) + '\n';
    for (const Fact& fact : key_facts(key, names)) text += two_columns(fact.label, fact.text, kIndent, kFactColumn);
    return text + example_text(key, names);
}

/// "num_stages = 4" with the default, "file" without one.
std::string short_default(const Key& key) {
    const std::string part = last_part(key.name);
    if (key.type == KeyType::TableList) return "[[" + part + "]]";
    const auto value = default_value(key);
    if (!value) return part;
    const std::string text = toml_text(*value);
    return text.size() <= kLongestShownDefault ? part + " = " + text : part;
}

std::string explain_section(const std::string& section) {
    std::string text = section_header(section) + '\n' + indented_text(section_sentence(section), kIndent) + '\n';
    for (const Key* key : keys_of(section)) {
        const std::string sentence = key->sentence + (key->required ? " Needed." : "");
        text += two_columns(short_default(*key), sentence, kIndent, kSentenceColumn);
    }
    for (const auto& [inner, sentence] : all_sections()) {
        const bool below = inner.starts_with(section + '.') && !find_key(inner);
        if (below) text += two_columns(section_header(inner), sentence, kIndent, kSentenceColumn);
    }
    return text;
}

}  // namespace

std::string explain_sections() {
    std::string text = "The sections of a plan; vpp explain SECTION or vpp explain KEY says more.\n\n";
    for (const auto& [section, sentence] : all_sections()) {
        text += two_columns(section_header(section), sentence, kIndent, kSectionColumn);
    }
    return text + "\n--set SECTION.KEY=VALUE sets a key for one call of a command.\n";
}

std::string explain(const std::string& question, const Names& names) {
    const std::string name = plain_name(question);
    if (!section_sentence(name).empty()) return explain_section(name);
    std::string text;
    for (const Key& key : all_keys()) {
        if (key.name != name && last_part(key.name) != name) continue;
        text += (text.empty() ? "" : "\n") + explain_key(key, names);
    }
    if (!text.empty()) return text;
    throw Error(ErrorKind::CommandLine,
                "a plan has no key '" + printable(question) + '\'' + unknown_name_answer(name, names));
}

}  // namespace vpp
