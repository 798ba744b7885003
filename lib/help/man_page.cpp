#include "help/man_page.hpp"

namespace vpp {

namespace {

/// Text as roff takes it: backslashes and hyphens written out, no line that begins with a control character.
std::string roff(const std::string& text) {
    std::string result = text.starts_with('.') || text.starts_with('\'') ? "\\&" : "";
    for (const char c : text) {
        if (c == '\\') {
            result += "\\e";
        } else if (c == '-') {
            result += "\\-";
        } else {
            result += c;
        }
    }
    return result;
}

std::string bold(const std::string& text) {
    return "\\fB" + roff(text) + "\\fR";
}

std::string italic(const std::string& text) {
    return "\\fI" + roff(text) + "\\fR";
}

/// A paragraph with a hanging tag.
std::string tagged(const std::string& tag, const std::string& text) {
    return ".TP\n" + tag + '\n' + roff(text) + '\n';
}

std::string section(const std::string& title) {
    return ".SH " + title + '\n';
}

std::string sentence(const std::string& text) {
    return text.ends_with('.') ? text : text + '.';
}

std::string option_tag(const OptionPage& option) {
    std::string tag;
    for (const std::string& name : option.names) tag += (tag.empty() ? "" : ", ") + bold(name);
    return tag + (option.value.empty() ? "" : ' ' + italic(option.value));
}

bool is_help(const OptionPage& option) {
    return !option.names.empty() && option.names.back() == "--help";
}

std::string example_part(const CommandPage& command) {
    std::string text;
    for (const std::string& example : command.examples) text += ".PP\n.RS 4\n.EX\n" + roff(example) + "\n.EE\n.RE\n";
    return text;
}

std::string command_part(const CommandPage& command) {
    std::string text = ".SS \"" + roff(usage_line(command)) + "\"\n" + roff(sentence(command.sentence)) + '\n';
    for (const OptionPage& option : command.options) {
        if (is_help(option)) continue;  // told once, among the options of all
        if (!option.argument.empty()) text += tagged(italic(option.argument), sentence(full_sentence(option)));
        if (option.names.empty()) continue;
        const bool told = !option.argument.empty();
        text += tagged(option_tag(option),
                       told ? "The same as the argument " + option.argument + '.' : sentence(full_sentence(option)));
    }
    return text + example_part(command);
}

std::string pairs_part(const std::string& title, const std::vector<std::pair<std::string, std::string>>& pairs) {
    std::string text = pairs.empty() ? "" : section(title);
    for (const auto& [name, meaning] : pairs) text += tagged(bold(name), sentence(meaning));
    return text;
}

}  // namespace

std::string man_page(const CommandPage& root, const ManualFacts& facts) {
    std::string upper = root.name;
    for (char& c : upper) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    std::string page = ".\\\" Made by: " + root.name + " man\n.TH " + upper + " 1 \"\" \"" + root.name + ' ' +
                       roff(facts.version) + "\" \"User Commands\"\n";
    page += section("NAME") + root.name + " \\- " + roff(root.sentence) + '\n';
    page += section("SYNOPSIS") + bold(root.name) + ' ' + italic("COMMAND") + " [" + italic("OPTIONS") + "]\n";
    page += section("DESCRIPTION") + roff(facts.description) + '\n' + example_part(root);
    page += section("OPTIONS");
    for (const OptionPage* option : named_options(root))
        page += tagged(option_tag(*option), sentence(option->sentence));
    page += section("COMMANDS");
    for (const CommandPage* command : all_commands(root)) {
        if (command != &root && command->commands.empty()) page += command_part(*command);
    }
    std::vector<std::pair<std::string, std::string>> codes;
    for (const auto& [code, meaning] : facts.exit_codes) codes.emplace_back(std::to_string(code), meaning);
    page += pairs_part("EXIT STATUS", codes);
    page += pairs_part("ENVIRONMENT", facts.environment);
    page += pairs_part("FILES", facts.files);
    return page + section("SEE ALSO") + bold("mpirun") + "(1)\n";
}

}  // namespace vpp
