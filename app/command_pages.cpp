#include "app/command_pages.hpp"

#include <CLI/CLI.hpp>

#include <map>
#include <sstream>

#include "app/command.hpp"
#include "base/error.hpp"
#include "help/help_text.hpp"

namespace vpp {

namespace {

/// What the parser's checks say of themselves: "{auto,no}", "INT in [1 - 8]".
std::vector<std::string> check_texts(CLI::Option& option) {
    std::vector<std::string> texts;
    try {
        for (int i = 0;; ++i) texts.push_back(option.get_validator(i)->get_description());
    } catch (const CLI::OptionNotFound&) {
        return texts;  // there is no other way to learn their number
    }
}

/// The words between the braces of "{auto,no}".
std::vector<std::string> words_in_braces(const std::string& text) {
    std::vector<std::string> words;
    if (!text.starts_with('{') || !text.ends_with('}')) return words;
    std::istringstream list(text.substr(1, text.size() - 2));
    for (std::string word; std::getline(list, word, ',');) words.push_back(word);
    return words;
}

/// The type's name without what the checks add to it; the parser's own names of types are not for people.
std::string placeholder(CLI::Option& option, const std::vector<std::string>& checks) {
    std::string name = option.get_type_name();
    for (auto check = checks.rbegin(); check != checks.rend(); ++check) {
        if (!check->empty()) name.resize(name.size() - check->size() - 1);
    }
    static const std::map<std::string, std::string> kPlain = {{"INT", "N"}, {"UINT", "N"}, {"FLOAT", "X"}};
    const auto found = kPlain.find(name);
    return found == kPlain.end() ? name : found->second;
}

OptionPage option_page(CLI::Option& option) {
    OptionPage page;
    for (const std::string& name : option.get_snames()) page.names.push_back('-' + name);
    for (const std::string& name : option.get_lnames()) page.names.push_back("--" + name);
    const std::vector<std::string> checks = check_texts(option);
    const std::string value = option.get_items_expected_max() == 0 ? "" : placeholder(option, checks);
    if (!page.names.empty()) page.value = value;
    if (option.get_positional()) page.argument = page.names.empty() ? option.get_name(true) : value;
    page.sentence = option.get_description();
    page.fallback = option.get_default_str();
    for (const std::string& text : checks) {
        for (std::string& word : words_in_braces(text)) page.choices.push_back(std::move(word));
    }
    page.required = option.get_required();
    page.repeats = option.get_items_expected_max() > 1;
    return page;
}

/// What a command that starts another one takes; the other one reads it.
OptionPage job_page() {
    OptionPage page;
    page.argument = "PLAN";
    page.sentence = "the plan (TOML); the command may stand before it (default: train), its options behind it";
    page.required = true;
    return page;
}

/// The lines of "Example:\n  vpp train plan.toml".
std::vector<std::string> examples_in(const std::string& footer) {
    std::vector<std::string> examples;
    std::istringstream lines(footer);
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("  ")) examples.push_back(line.substr(2));
    }
    return examples;
}

CommandPage page_of(CLI::App& app, const std::string& above) {
    CommandPage page;
    page.name = above + app.get_name();
    page.sentence = app.get_description();
    page.examples = examples_in(app.get_footer());
    const CLI::Option* help = app.get_help_ptr();
    for (CLI::Option* option : app.get_options([&](CLI::Option* one) { return one != help; })) {
        if (!option->get_group().empty()) page.options.push_back(option_page(*option));
    }
    if (app.get_allow_extras()) {
        page.options.push_back(job_page());
        page.starts.assign(kCommandsOnRanks.begin(), kCommandsOnRanks.end());
    }
    if (help) page.options.push_back(option_page(*app.get_help_ptr()));
    for (CLI::App* below : app.get_subcommands([](CLI::App* one) { return !one->get_group().empty(); })) {
        page.commands.push_back(page_of(*below, page.name + ' '));
    }
    if (page.examples.empty() && !page.commands.empty()) page.examples = page.commands.front().examples;
    return page;
}

}  // namespace

CommandPage command_pages(CLI::App& app) {
    return page_of(app, "");
}

void use_help_screens(CLI::App& app) {
    app.set_help_flag("-h,--help", "print this help");
    app.formatter_fn([&app](const CLI::App*, const std::string& name, CLI::AppFormatMode) {
        const CommandPage root = command_pages(app);
        const CommandPage* page = find_command(root, name);
        check(page != nullptr, "the help of an unknown command is asked for");
        return help_text(*page);
    });
}

}  // namespace vpp
