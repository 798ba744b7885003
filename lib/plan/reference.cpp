#include "plan/reference.hpp"

#include "plan/key_facts.hpp"

namespace vpp {

namespace {

constexpr size_t kExampleColumns = 100;

/// The anchor that a page gets from a heading such as "[pipeline.stage]": letters, digits, '_' and '-' stay.
std::string anchor(const std::string& heading) {
    std::string text;
    for (const char c : heading) {
        const bool stays = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
        if (stays) text += c;
    }
    return text;
}

/// Text whose letters say something to Markdown: <plan's name>, *.bias, a_b.
std::string escaped(const std::string& text) {
    std::string result;
    for (const char c : text) {
        if (c == '<' || c == '*' || c == '[' || c == ']') result += '\\';
        result += c;
    }
    return result;
}

/// Words and TOML as code, prose as prose.
std::string fact_text(const Fact& fact, const Key& key, const Names& names) {
    if (fact.label == "words") {
        std::string text;
        for (const std::string& word : own_words(key, names)) text += (text.empty() ? "`" : ", `") + word + '`';
        return text;
    }
    if (fact.label == "default" && key.default_note.empty() && default_value(key)) return '`' + fact.text + '`';
    return escaped(fact.text);
}

std::string key_part(const Key& key, const Names& names) {
    std::string text = "### `" + key.name + "`\n\n" + escaped(key.sentence) + "\n\n";
    for (const Fact& fact : key_facts(key, names)) {
        text += "- " + fact.label + ": " + fact_text(fact, key, names) + '\n';
    }
    const auto example = example_lines(key, names, kExampleColumns);
    if (example.size() == 1) text += "- example: `" + example.front() + "`\n";
    if (example.size() > 1) {
        text += "\n```toml\n";
        for (const std::string& line : example) text += line + '\n';
        text += "```\n";
    }
    return text + '\n';
}

}  // namespace

std::string reference_page(const Names& names) {
    std::string page =
        "# All keys of a plan\n\n"
        "Made by `vpp explain --markdown` from the table that plans are checked by; do not edit. Paths of inputs are\n"
        "relative to the plan, paths of outputs to the current folder. `--set section.key=value` overrides any key "
        "for\n"
        "one call. `vpp explain KEY` shows the same on the command line; `vpp schema` gives editors a JSON Schema.\n\n";
    for (const auto& [section, sentence] : all_sections()) {
        const std::string header = section_header(section);
        page += "- [`" + header + "`](#" + anchor(header) + "): " + escaped(sentence) + '\n';
    }
    page += '\n';
    for (const auto& [section, sentence] : all_sections()) {
        page += "## `" + section_header(section) + "`\n\n" + escaped(sentence) + "\n\n";
        for (const Key* key : keys_of(section)) page += key_part(*key, names);
    }
    page.pop_back();
    return page;
}

}  // namespace vpp
