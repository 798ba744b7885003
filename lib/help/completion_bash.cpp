#include <map>

#include "help/completion.hpp"

namespace vpp {

namespace {

/// The walk over the words before the cursor. COMP_WORDBREAKS makes "=" a word of its own, so that `--set a.b=c` is
/// four words; a value that may stand next is known by the option in `option`, a key of --set by `setting`.
constexpr const char* kWalk = R"sh(_vpp() {
    local cur=${COMP_WORDS[COMP_CWORD]} command=vpp option='' setting='' argument=0 before='' word i
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ $word == '=' ]]; then
            [[ $before == -* ]] && option=$before
        elif [[ -n $option ]]; then
            [[ $(_vpp_value "$command $option") == settings ]] && setting=$word
            option=''
        elif [[ $word == -* ]]; then
            [[ -n $(_vpp_value "$command $word") ]] && option=$word
        elif [[ " $(_vpp_commands "$command") " == *" $word "* ]]; then
            command="$command $word"
        elif [[ $before != '=' ]]; then
            argument=$((argument + 1))
        fi
        before=$word
    done
    if [[ $cur == '=' ]]; then
        [[ $before == -* ]] && option=$before
        [[ $before == "$setting" ]] || setting=''
        cur='' before='='
    fi
    if [[ $before == '=' && -n $setting && -z $option ]]; then
        _vpp_offer "$(_vpp_setting_words "$setting")"
    elif [[ -n $option ]]; then
        _vpp_complete "$(_vpp_value "$command $option")"
    elif [[ $cur == -* ]]; then
        _vpp_offer "$(_vpp_options "$command")"
    else
        _vpp_complete "$(_vpp_argument "$command" "$argument")"
        # A command may stand in place of the first argument, and where there is none.
        [[ $argument == 0 || -z $(_vpp_argument "$command" 0) ]] && _vpp_offer_more "$(_vpp_commands "$command")"
    fi
}
)sh";

constexpr const char* kBashHelpers = R"sh(_vpp_offer() {
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur")
}

_vpp_offer_more() {
    mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W "$1" -- "$cur")
}

_vpp_files() {
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <("$@" | sort -u)
}

_vpp_complete() {
    case $1 in
        plans) _vpp_files _vpp_plans ;;
        files) _vpp_files compgen -f -- "$cur" ;;
        folders) _vpp_files compgen -d -- "$cur" ;;
        settings)
            compopt -o nospace 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -S = -W "$(_vpp_settings)" -- "$cur")
            ;;
        keys) _vpp_offer "$(_vpp_keys)" ;;
        words\ *) _vpp_offer "${1#words }" ;;
    esac
}

_vpp_plans() {
    compgen -d -- "$cur"
    compgen -f -X '!*.toml' -- "$cur"
}
)sh";

/// The word that the script knows a kind by; `any` takes a value of which nothing is known.
std::string kind_word(const OptionPage& option, const std::string& placeholder) {
    switch (value_kind(option, placeholder)) {
        case ValueKind::Words: {
            std::string words = "words";
            for (const std::string& choice : option.choices) words += ' ' + choice;
            return words;
        }
        case ValueKind::Plan:
            return "plans";
        case ValueKind::File:
            return "files";
        case ValueKind::Folder:
            return "folders";
        case ValueKind::Setting:
            return "settings";
        case ValueKind::Key:
            return "keys";
        case ValueKind::Unknown:
            break;
    }
    return "any";
}

std::string bash_quoted(const std::string& text) {
    return '\'' + text + '\'';
}

/// A function that prints a text by its arguments: case "$*" in 'a' | 'b') echo 'text' ;; esac. Arguments with the same
/// text share a line.
class CaseFunction {
  public:
    explicit CaseFunction(std::string name) : name_(std::move(name)) {}

    void add(const std::string& arguments, const std::string& text) {
        if (!texts_.contains(text)) order_.push_back(text);
        texts_[text].push_back(arguments);
    }

    std::string script() const {
        std::string script = name_ + "() {\n    case $* in\n";
        for (const std::string& text : order_) {
            const std::vector<std::string>& patterns = texts_.at(text);
            for (size_t i = 0; i < patterns.size(); ++i) {
                script += (i == 0 ? "        " : " | \\\n        ") + patterns[i];
            }
            script += ") echo " + bash_quoted(text) + " ;;\n";
        }
        return script + "    esac\n}\n\n";
    }

  private:
    std::string name_;
    std::vector<std::string> order_;
    std::map<std::string, std::vector<std::string>> texts_;
};

std::string words_of(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
    return text;
}

std::string list_function(const std::string& name, const std::vector<std::string>& words) {
    std::string text = name + "() {\n    echo";
    for (const std::string& word : words) text += " \\\n        " + bash_quoted(word);
    return text + "\n}\n\n";
}

void add_command(const CommandPage& command, CaseFunction& commands, CaseFunction& options, CaseFunction& values,
                 CaseFunction& positions) {
    std::vector<std::string> below, names;
    for (const CommandPage& one : command.commands) below.push_back(last_word(one.name));
    if (!below.empty()) commands.add(bash_quoted(command.name), words_of(below));
    for (const OptionPage* option : named_options(command)) {
        for (const std::string& name : option->names) {
            names.push_back(name);
            if (!option->value.empty())
                values.add(bash_quoted(command.name + ' ' + name), kind_word(*option, option->value));
        }
    }
    options.add(bash_quoted(command.name), words_of(names));
    const auto all = arguments(command);
    for (size_t i = 0; i < all.size(); ++i) {
        const std::string place = all[i]->repeats ? " '*" : ' ' + std::to_string(i) + '\'';
        positions.add('\'' + command.name + place, kind_word(*all[i], all[i]->argument));
    }
}

}  // namespace

std::string bash_completion(const CommandPage& root, const std::vector<SettingPage>& settings,
                            const std::vector<std::string>& keys) {
    CaseFunction commands("_vpp_commands"), options("_vpp_options"), values("_vpp_value"), positions("_vpp_argument");
    const CommandPage tree = with_started_commands(root);
    for (const CommandPage* command : all_commands(tree)) add_command(*command, commands, options, values, positions);
    CaseFunction setting_words("_vpp_setting_words");
    std::vector<std::string> setting_names;
    for (const SettingPage& setting : settings) {
        setting_names.push_back(setting.name);
        if (!setting.words.empty()) setting_words.add(bash_quoted(setting.name), words_of(setting.words));
    }
    return "# bash completion of vpp; made by: vpp completion bash\n\n" + commands.script() + options.script() +
           values.script() + positions.script() + setting_words.script() +
           list_function("_vpp_settings", setting_names) + list_function("_vpp_keys", keys) + kBashHelpers + '\n' +
           kWalk + "\ncomplete -F _vpp vpp\n";
}

}  // namespace vpp
