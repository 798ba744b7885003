#include "help/completion.hpp"

namespace vpp {

namespace {

/// In single quotes, as fish reads them.
std::string fish_quoted(const std::string& text) {
    std::string result = "'";
    for (const char c : text) {
        if (c == '\'' || c == '\\') result += '\\';
        result += c;
    }
    return result + '\'';
}

constexpr const char* kFishHelpers = R"sh(function __vpp_at
    set -l command vpp
    set -l words (commandline -opc)
    for word in $words[2..-1]
        if contains -- "$command $word" $__vpp_commands
            set command "$command $word"
        end
    end
    test "$command" = "$argv[1]"
end

function __vpp_plans
    __fish_complete_path (commandline -ct) | string match -r '^.*(?:/|\.toml)(?:\t.*)?$'
end

function __vpp_settings
    set -l parts (string split -m 1 = -- (commandline -ct))
    if test (count $parts) -lt 2
        __vpp_setting_names
    else
        for word in (__vpp_setting_words $parts[1])
            echo $parts[1]=$word
        end
    end
end

)sh";

/// The arguments of `complete` that say what may stand as a value.
std::string value_arguments(const OptionPage& option, const std::string& placeholder) {
    std::string words;
    switch (value_kind(option, placeholder)) {
        case ValueKind::Words:
            for (const std::string& choice : option.choices) words += (words.empty() ? "" : " ") + choice;
            return " -a " + fish_quoted(words);
        case ValueKind::Plan:
            return " -a '(__vpp_plans)'";
        case ValueKind::File:
            return " -F";
        case ValueKind::Folder:
            return " -a '(__fish_complete_directories (commandline -ct))'";
        case ValueKind::Setting:
            return " -a '(__vpp_settings)'";
        case ValueKind::Key:
            return " -a '(__vpp_keys)'";
        case ValueKind::Unknown:
            break;
    }
    return "";
}

std::string option_line(const std::string& begin, const OptionPage& option) {
    std::string line = begin;
    for (const std::string& name : option.names) {
        line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    }
    if (!option.value.empty()) {
        const bool is_file = value_kind(option) == ValueKind::File;
        line += (is_file ? " -r" : " -x") + value_arguments(option, option.value);  // -x: no files but those offered
    }
    return line + " -d " + fish_quoted(option.sentence) + '\n';
}

std::string command_lines(const CommandPage& command) {
    const std::string begin = "complete -c vpp -n " + fish_quoted("__vpp_at \"" + command.name + '"');
    std::string lines;
    for (const CommandPage& below : command.commands) {
        lines += begin + " -a " + last_word(below.name) + " -d " + fish_quoted(below.sentence) + '\n';
    }
    for (const OptionPage* option : named_options(command)) lines += option_line(begin, *option);
    for (const OptionPage* option : arguments(command)) {
        const std::string values = value_arguments(*option, option->argument);
        if (!values.empty()) lines += begin + values + '\n';
    }
    return lines;
}

std::string words_function(const std::vector<SettingPage>& settings) {
    std::string text = "function __vpp_setting_words\n    switch $argv[1]\n";
    for (const SettingPage& setting : settings) {
        if (setting.words.empty()) continue;
        text += "        case " + fish_quoted(setting.name) + "\n            printf '%s\\n'";
        for (const std::string& word : setting.words) text += ' ' + word;
        text += '\n';
    }
    return text + "    end\nend\n\n";
}

std::string names_function(const std::vector<SettingPage>& settings) {
    std::string text = "function __vpp_setting_names\n    printf '%s=\\t%s\\n'";
    for (const SettingPage& setting : settings) {
        text += " \\\n        " + fish_quoted(setting.name) + ' ' + fish_quoted(setting.sentence);
    }
    return text + "\nend\n\n";
}

std::string fish_keys_function(const std::vector<std::string>& keys) {
    std::string text = "function __vpp_keys\n    printf '%s\\n'";
    for (const std::string& key : keys) text += " \\\n        " + key;
    return text + "\nend\n\n";
}

}  // namespace

std::string fish_completion(const CommandPage& root, const std::vector<SettingPage>& settings,
                            const std::vector<std::string>& keys) {
    std::string script = "# fish completion of vpp; made by: vpp completion fish\n\nset -g __vpp_commands";
    const CommandPage tree = with_started_commands(root);
    for (const CommandPage* command : all_commands(tree)) {
        if (command != &tree) script += " \\\n    " + fish_quoted(command->name);
    }
    script += "\n\n" + words_function(settings) + names_function(settings) + fish_keys_function(keys) + kFishHelpers;
    script += "complete -c vpp -f\n";
    for (const CommandPage* command : all_commands(tree)) script += command_lines(*command);
    return script;
}

}  // namespace vpp
