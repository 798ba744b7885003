#include "graph/operator_check.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"

namespace vpp {

namespace {

constexpr std::array kRefused = std::to_array<RefusedOperator>({
    {"from_file", "reads and writes files"},
    {"save", "writes files"},
    {"print", "prints"},
    {"Print", "prints"},
    {"_print", "prints"},
    {"rpc_async", "calls other processes"},
    {"rpc_sync", "calls other processes"},
    {"rpc_remote", "calls other processes"},
    {"dist_backward", "calls other processes"},
    {"PythonOp", "calls Python"},
    {"IgnoredPythonOp", "calls Python"},
});

/// Of the refused ones those that are called by their bare name; anywhere else such a word is a variable.
constexpr std::array kBareNames = std::to_array<std::string_view>({"print", "rpc_async", "rpc_sync", "rpc_remote"});

constexpr std::string_view kRunsWhileLoading = "__setstate__";

enum class Kind { Word, String, Symbol };

struct Token {
    Kind kind;
    std::string_view text;  ///< of a string what is between its quotes
    int line;
    bool is(std::string_view other) const { return kind != Kind::String && text == other; }
};

bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || (c & 0x80) != 0;
}

bool is_space(char c) {
    return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

/// Splits code into tokens. Comments are read as code, since a "# type:" is.
class Lexer {
  public:
    explicit Lexer(std::string_view code) : code_(code) {}

    /// What is wrong with the text as far as it was read.
    std::optional<CodeFinding> finding;

    std::vector<Token> tokens() {
        std::vector<Token> found;
        while (at_ < code_.size() && !finding) {
            const char c = code_[at_];
            if (c == '\n') ++line_;
            if (is_space(c)) {
                ++at_;
            } else if (c == '"' || c == '\'') {
                found.push_back(string(c));
            } else {
                found.push_back(is_word(c) ? word() : Token{Kind::Symbol, code_.substr(at_++, 1), line_});
            }
        }
        return found;
    }

  private:
    Token word() {
        const size_t begin = at_;
        while (at_ < code_.size() && is_word(code_[at_])) ++at_;
        return {Kind::Word, code_.substr(begin, at_ - begin), line_};
    }

    Token string(char quote) {
        const size_t begin = ++at_;
        while (at_ < code_.size() && code_[at_] != quote && code_[at_] != '\n') {
            at_ += code_[at_] == '\\' && at_ + 1 < code_.size() && code_[at_ + 1] != '\n' ? 2 : 1;
        }
        const bool closed = at_ < code_.size() && code_[at_] == quote;
        if (!closed) finding = {line_, "has a string without an end"};
        const Token token{Kind::String, code_.substr(begin, std::min(at_, code_.size()) - begin), line_};
        ++at_;
        const bool triple = token.text.empty() && at_ < code_.size() && code_[at_] == quote;
        if (triple) finding = {line_, "has a string in triple quotes, which torch.jit.save does not write"};
        return token;
    }

    std::string_view code_;
    size_t at_ = 0;
    int line_ = 1;
};

const RefusedOperator* refused(std::string_view name) {
    const auto found = std::ranges::find(kRefused, name, &RefusedOperator::name);
    return found == kRefused.end() ? nullptr : &*found;
}

bool contains(const auto& names, std::string_view name) {
    return std::ranges::find(names, name) != names.end();
}

/// Judges the words of a code text one by one.
class Judge {
  public:
    explicit Judge(const std::vector<Token>& tokens) : tokens_(tokens) {}

    std::optional<CodeFinding> first_finding() const {
        for (size_t i = 0; i < tokens_.size(); ++i) {
            if (tokens_[i].kind != Kind::Word) continue;
            if (std::string what = judge(i); !what.empty()) return CodeFinding{tokens_[i].line, std::move(what)};
        }
        return std::nullopt;
    }

  private:
    bool is(size_t i, std::string_view text) const { return i < tokens_.size() && tokens_[i].is(text); }
    bool is_after(size_t i, std::string_view text) const { return i > 0 && is(i - 1, text); }

    /// What is wrong with the word; empty for nothing.
    std::string judge(size_t i) const {
        const std::string_view word = tokens_[i].text;
        const bool is_attribute = is_after(i, "."), is_defined = is_after(i, "def");
        if (word == kRunsWhileLoading) return runs_while_loading();
        // print is no operator but a word of the language: x.print is a method of the model's own.
        const bool is_call = is_attribute ? word != "print" : contains(kBareNames, word) && !is_defined;
        if (const RefusedOperator* found = refused(word); found && is_call) return calls(*found);
        if (word == "classes" && is_attribute && i > 1 && is(i - 2, "torch")) return "uses a custom class of a library";
        if (is_attribute || is_defined) return "";
        if (word == "ops") return judge_namespace(i);
        return word == "getattr" ? judge_getattr(i) : "";
    }

    static std::string calls(const RefusedOperator& found) {
        return "calls " + std::string(found.name) + ", which " + std::string(found.does);
    }

    static std::string runs_while_loading() {
        return "has the method __setstate__, which runs while the file is loaded (quantized modules have one)";
    }

    /// ops.<namespace>.<operator>
    std::string judge_namespace(size_t i) const {
        const bool plain = is(i + 1, ".") && is(i + 3, ".") && i + 4 < tokens_.size();
        if (!plain) return "uses the namespace of operators in a way that hides names";
        const std::string_view space = tokens_[i + 2].text;
        if (space == "aten" || space == "prim") return "";
        return "calls " + std::string(space) + "::" + std::string(tokens_[i + 4].text) +
               ", an operator of a library that vpp does not know";
    }

    /// getattr(<expression>, "name")
    std::string judge_getattr(size_t i) const {
        size_t end = i + 1;
        int depth = 0;
        do {
            if (is(end, "(")) ++depth;
            if (is(end, ")")) --depth;
            ++end;
        } while (depth > 0 && end < tokens_.size());
        const bool plain = depth == 0 && end > i + 5 && tokens_[end - 2].kind == Kind::String && is(end - 3, ",") &&
                           tokens_[end - 2].text.find('\\') == std::string_view::npos;
        if (!plain) return "uses getattr in a way that hides names";
        const std::string_view name = tokens_[end - 2].text;
        if (name == kRunsWhileLoading) return runs_while_loading();
        const RefusedOperator* found = refused(name);
        return found ? calls(*found) : "";
    }

    const std::vector<Token>& tokens_;
};

/// What a pickle may not name: classes that are made by a library's own code.
std::optional<CodeFinding> find_untrusted_class(std::string_view pickle) {
    for (const std::string_view name : {"torch.classes", "torch\nclasses"}) {
        if (pickle.find(name) != std::string_view::npos) return CodeFinding{1, "uses a custom class of a library"};
    }
    return std::nullopt;
}

}  // namespace

std::span<const RefusedOperator> refused_operators() {
    return kRefused;
}

std::optional<CodeFinding> find_untrusted(std::string_view code) {
    Lexer lexer(code);
    const std::vector<Token> tokens = lexer.tokens();
    if (auto found = Judge(tokens).first_finding()) return found;
    return lexer.finding;
}

void check_operators(const Archive& archive, const std::vector<std::string>& trusted) {
    for (const auto& [name, text] : archive.program()) {
        const bool is_code = name.ends_with(".py");
        const auto found = is_code ? find_untrusted(text) : find_untrusted_class(text);
        if (!found) continue;
        const std::string digest = archive.sha256();
        if (std::ranges::find(trusted, digest) != trusted.end()) return;
        const std::string place = name + (is_code ? ":" + std::to_string(found->line) : "");
        throw Error(ErrorKind::Refused, archive.path().string() + ": the model's code " + printable(found->what) +
                                            " (" + printable(place) +
                                            "); a model file is a program: if you trust this one, set "
                                            "model.trust_sha256 = [\"" +
                                            digest + "\"]");
    }
}

}  // namespace vpp
