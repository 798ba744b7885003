#include "help/help_text.hpp"

#include <algorithm>

#include "base/wrapped_text.hpp"

namespace vpp {

namespace {

constexpr size_t kIndent = 2;
constexpr size_t kWidestColumn = 28;  ///< a longer name has a line of its own

struct Row {
    std::string left, right;
};

/// Rows under a title, the second column as far left as the names allow; empty without rows.
std::string part(const std::string& title, const std::vector<Row>& rows) {
    if (rows.empty()) return "";
    size_t column = 0;
    for (const Row& row : rows) {
        const size_t wanted = kIndent + row.left.size() + 2;
        if (wanted <= kWidestColumn) column = std::max(column, wanted);
    }
    if (column == 0) column = kWidestColumn;
    std::string text = '\n' + title + ":\n";
    for (const Row& row : rows) text += two_columns(row.left, row.right, kIndent, column);
    return text;
}

/// "-n, --ranks N"
std::string option_words(const OptionPage& option) {
    std::string text;
    for (const std::string& name : option.names) text += (text.empty() ? "" : ", ") + name;
    return text + (option.value.empty() ? "" : ' ' + option.value);
}

std::vector<Row> argument_rows(const CommandPage& command) {
    std::vector<Row> rows;
    for (const OptionPage* option : arguments(command)) rows.push_back({option->argument, full_sentence(*option)});
    return rows;
}

/// An option that is an argument too has its sentence there.
std::vector<Row> option_rows(const CommandPage& command) {
    std::vector<Row> rows;
    for (const OptionPage* option : named_options(command)) {
        const bool told = !option->argument.empty();
        rows.push_back({option_words(*option), told ? "the same as the argument " + option->argument
                                                    : full_sentence(*option) + (option->required ? " (needed)" : "")});
    }
    return rows;
}

std::vector<Row> command_rows(const CommandPage& command) {
    std::vector<Row> rows;
    for (const CommandPage& below : command.commands) rows.push_back({last_word(below.name), below.sentence});
    return rows;
}

}  // namespace

std::string help_text(const CommandPage& command) {
    std::string text = indented_text(command.name + ": " + command.sentence, 0) + '\n' +
                       indented_text("Usage: " + usage_line(command), 0);
    text += part("Arguments", argument_rows(command));
    text += part("Commands", command_rows(command));
    text += part("Options", option_rows(command));
    if (command.examples.empty()) return text;
    text += command.examples.size() == 1 ? "\nExample:\n" : "\nExamples:\n";
    for (const std::string& example : command.examples) text += std::string(kIndent, ' ') + example + '\n';
    return text;
}

}  // namespace vpp
