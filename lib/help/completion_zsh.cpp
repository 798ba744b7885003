#include "help/completion.hpp"

namespace vpp {

namespace {

/// In single quotes, as zsh reads them.
std::string zsh_quoted(const std::string& text) {
    std::string result = "'";
    for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return result + '\'';
}

/// With backslashes before all of `letters`, which say something to _arguments or _describe.
std::string escaped(const std::string& text, const std::string& letters) {
    std::string result;
    for (const char c : text) {
        if (c == '\\' || letters.find(c) != std::string::npos) result += '\\';
        result += c;
    }
    return result;
}

std::string function_name(const std::string& command) {
    std::string name = '_' + command;
    for (char& c : name) {
        if (c == ' ' || c == '-') c = '_';
    }
    return name;
}

/// What offers the values of an option or argument: "_files -g "*.toml"".
std::string zsh_action(const OptionPage& option, const std::string& placeholder) {
    std::string action = " ";
    switch (value_kind(option, placeholder)) {
        case ValueKind::Words:
            action = "(";
            for (const std::string& choice : option.choices) action += (action == "(" ? "" : " ") + choice;
            action += ')';
            break;
        case ValueKind::Plan:
            action = "_files -g \"*.toml\"";
            break;
        case ValueKind::File:
            action = "_files";
            break;
        case ValueKind::Folder:
            action = "_files -/";
            break;
        case ValueKind::Setting:
            action = "_vpp_settings";
            break;
        case ValueKind::Key:
            action = "_vpp_keys";
            break;
        case ValueKind::Unknown:
            break;
    }
    return action;
}

/// ":PLAN:_files -g "*.toml"": what is asked for, and what offers it.
std::string value_part(const OptionPage& option, const std::string& placeholder) {
    return ':' + escaped(placeholder, ":") + ':' + zsh_action(option, placeholder);
}

/// "--set=" and "-n+": the value may follow behind a space, too.
std::string with_sign(const std::string& name, const OptionPage& option) {
    if (option.value.empty()) return name;
    return name + (name.starts_with("--") ? "=" : "+");
}

/// One line for each name of the option; of two names one excludes the other.
std::string option_lines(const OptionPage& option) {
    std::string lines, exclusion;
    const bool ends = option.names.back() == "--help" || option.names.back() == "--version";
    if (ends) exclusion = "(- *)";
    if (!ends && !option.repeats && option.names.size() > 1) {
        for (const std::string& name : option.names) exclusion += (exclusion.empty() ? "(" : " ") + name;
        exclusion += ')';
    }
    for (const std::string& name : option.names) {
        const std::string value = option.value.empty() ? "" : value_part(option, option.value);
        lines += " \\\n    " + zsh_quoted(exclusion + (option.repeats ? "*" : "") + with_sign(name, option) + '[' +
                                          escaped(option.sentence, "[]") + ']' + value);
    }
    return lines;
}

std::string argument_line(const OptionPage& option) {
    const std::string value = value_part(option, option.argument);
    const bool optional = !option.required || !option.names.empty();
    return " \\\n    " + zsh_quoted(option.repeats ? '*' + value : (optional ? ":" : "") + value);
}

std::string option_list(const CommandPage& command) {
    std::string lines;
    for (const OptionPage* option : named_options(command)) lines += option_lines(*option);
    return lines;
}

std::string leaf_function(const CommandPage& command) {
    std::string text = function_name(command.name) + "() {\n  _arguments -s -S" + option_list(command);
    for (const OptionPage* option : arguments(command)) text += argument_line(*option);
    return text + "\n}\n\n";
}

/// Of a command that takes an argument where those below it may stand.
std::string first_argument_line(const CommandPage& command) {
    const auto all = arguments(command);
    const std::string action = all.empty() ? "" : zsh_action(*all.front(), all.front()->argument);
    return action.starts_with('_') ? "      " + action + " && ret=0\n" : "";
}

/// A command that has others below it hands the rest of the line to their functions.
std::string group_function(const CommandPage& command) {
    std::string text = function_name(command.name) +
                       "() {\n  local curcontext=\"$curcontext\" state line ret=1\n  local -a commands\n"
                       "  typeset -A opt_args\n  _arguments -C" +
                       option_list(command) + " \\\n    '1: :->command' \\\n    '*:: :->rest' && ret=0\n" +
                       "  case $state in\n    command)\n      commands=(\n";
    for (const CommandPage& below : command.commands) {
        text += "        " + zsh_quoted(last_word(below.name) + ':' + escaped(below.sentence, "")) + '\n';
    }
    text += "      )\n      _describe -t commands command commands && ret=0\n" + first_argument_line(command) +
            "      ;;\n    rest)\n      case $words[1] in\n";
    for (const CommandPage& below : command.commands) {
        text += "        " + last_word(below.name) + ") " + function_name(below.name) + " && ret=0 ;;\n";
    }
    if (!command.starts.empty())
        text += "        *) " + function_name(command.commands.front().name) + " && ret=0 ;;\n";
    return text + "      esac\n      ;;\n  esac\n  return ret\n}\n\n";
}

std::string settings_function(const std::vector<SettingPage>& settings) {
    std::string text =
        "_vpp_settings() {\n  local -a names\n  if compset -P '*='; then\n    case ${${IPREFIX%=}##*=} in\n";
    for (const SettingPage& setting : settings) {
        if (setting.words.empty()) continue;
        text += "      " + escaped(setting.name, "[]") + ") compadd --";
        for (const std::string& word : setting.words) text += ' ' + word;
        text += " ;;\n";
    }
    text += "    esac\n    return\n  fi\n  names=(\n";
    for (const SettingPage& setting : settings) {
        text += "    " + zsh_quoted(setting.name + ':' + escaped(setting.sentence, "")) + '\n';
    }
    return text + "  )\n  _describe -t keys 'key of the plan' names -S =\n}\n\n";
}

std::string zsh_keys_function(const std::vector<std::string>& keys) {
    std::string text = "_vpp_keys() {\n  compadd --";
    for (const std::string& key : keys) text += " \\\n    " + key;
    return text + "\n}\n\n";
}

}  // namespace

std::string zsh_completion(const CommandPage& root, const std::vector<SettingPage>& settings,
                           const std::vector<std::string>& keys) {
    std::string script = "#compdef vpp\n# zsh completion of vpp; made by: vpp completion zsh\n\n";
    const CommandPage tree = with_started_commands(root);
    for (const CommandPage* command : all_commands(tree)) {
        script += command->commands.empty() ? leaf_function(*command) : group_function(*command);
    }
    return script + settings_function(settings) + zsh_keys_function(keys) +
           "if [ \"$funcstack[1]\" = _vpp ]; then\n  _vpp \"$@\"\nelse\n  compdef _vpp vpp\nfi\n";
}

}  // namespace vpp
