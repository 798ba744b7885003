#include "plan/bounds.hpp"

#include "base/utf8.hpp"

namespace vpp {

namespace {

bool is_forbidden_control(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\t' && c != '\n' && c != '\r') || byte == 0x7f;
}

/// Walks over a text, character by character, and knows whether it stands inside a comment or a TOML string. On a text
/// that is not TOML it may be wrong from the first error on, where the parser stops anyway.
class Scanner {
  public:
    Scanner(std::string_view text, bool is_toml) : text_(text), is_toml_(is_toml) {}

    std::optional<BoundsProblem> run() {
        if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;  // a byte order mark
        while (at_ < text_.size()) {
            const char c = text_[at_];
            const std::optional<Character> character = first_character(text_.substr(at_));
            if (!character) return problem("this byte is not UTF-8; save the file as UTF-8");
            if (is_forbidden_control(c)) return problem("control characters are not allowed in a plan; remove it");
            if (c == '\n') {
                next_line();
                continue;
            }
            if (auto found = delimiter_.empty() ? outside(c) : inside(c)) return found;
            at_ += character->length;
            ++column_;
        }
        return std::nullopt;
    }

  private:
    std::optional<BoundsProblem> outside(char c) {
        if (comment_) return std::nullopt;
        // TOML has no such characters here, and the library's tables of them have holes.
        if (is_toml_ && static_cast<unsigned char>(c) >= 0x80) {
            return problem("characters outside ASCII need quotes around them");
        }
        if (c == '#') comment_ = true;
        if (c == '"' || c == '\'') open_string(c);
        if ((c == '[' || c == '{') && ++nesting_ > kPlanLimitNesting) {
            return problem("brackets are nested too deeply (at most " + std::to_string(kPlanLimitNesting) + ")");
        }
        if ((c == ']' || c == '}') && nesting_ > 0) --nesting_;
        if (c == '.' && ++dots_ > kPlanLimitDots) {
            return problem("too many dots in one line (at most " + std::to_string(kPlanLimitDots) + ")");
        }
        return std::nullopt;
    }

    void open_string(char quote) {
        const std::string three(3, quote);
        delimiter_ = text_.substr(at_).starts_with(three) ? three : std::string(1, quote);
        skip(delimiter_.size() - 1);
    }

    std::optional<BoundsProblem> inside(char c) {
        const char quote = delimiter_[0];
        if (c == '\\' && quote == '"') {
            if (at_ + 1 < text_.size() && (text_[at_ + 1] == '"' || text_[at_ + 1] == '\\')) skip(1);
        } else if (text_.substr(at_).starts_with(delimiter_)) {
            skip(delimiter_.size() - 1);
            // A multi-line string may end in up to two quotes of its own: """a""""" is a"".
            if (delimiter_.size() == 3) {
                for (int extra = 0; extra < 2 && at_ + 1 < text_.size() && text_[at_ + 1] == quote; ++extra) skip(1);
            }
            delimiter_.clear();
        }
        return std::nullopt;
    }

    void skip(size_t num_characters) {
        at_ += num_characters;
        column_ += static_cast<int>(num_characters);
    }

    void next_line() {
        ++at_;
        ++line_;
        column_ = 1;
        dots_ = 0;
        comment_ = false;
        if (delimiter_.size() == 1) delimiter_.clear();
    }

    BoundsProblem problem(std::string message) const { return {line_, column_, std::move(message)}; }

    std::string_view text_;
    bool is_toml_;
    size_t at_ = 0;
    int line_ = 1, column_ = 1, nesting_ = 0, dots_ = 0;
    bool comment_ = false;
    std::string delimiter_;  // of the string that is open; empty outside strings
};

std::optional<BoundsProblem> find_problem(std::string_view text, bool is_toml) {
    if (text.size() > kPlanLimitBytes) {
        return BoundsProblem{0, 0,
                             "the plan is too large (got " + std::to_string(text.size()) + " bytes, expected at most " +
                                 std::to_string(kPlanLimitBytes) +
                                 "); data and weights belong into files of their own"};
    }
    return Scanner(text, is_toml).run();
}

}  // namespace

std::optional<BoundsProblem> check_bounds(std::string_view text) {
    return find_problem(text, true);
}

std::optional<BoundsProblem> check_plain_bounds(std::string_view text) {
    return find_problem(text, false);
}

}  // namespace vpp
