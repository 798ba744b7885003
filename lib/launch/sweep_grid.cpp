#include "launch/sweep_grid.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/hash.hpp"
#include "base/utf8.hpp"

namespace vpp {

namespace {

constexpr const char* kForm = "--grid section.key=value,value";
constexpr size_t kLongestPlain = 60;  // of a value in a name
constexpr size_t kLongestName = 180;  // of 255 that file systems allow
constexpr size_t kDigits = 8;         // of a hash, where a name does not hold all

bool is_control(char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

/// In characters, from 1.
int column_of(std::string_view text, size_t at) {
    return 1 + static_cast<int>(num_characters(text.substr(0, at)));
}

/// The text shortened to `most` bytes; where that or anything else has `lost` a part of `whole`, digits made from it
/// follow.
std::string told_apart(const std::string& text, size_t most, bool lost, const std::string& whole) {
    if (!lost && text.size() <= most) return text;
    return text.substr(0, most - kDigits - 1) + '-' + to_hex(hash_text(whole)).substr(0, kDigits);
}

/// Letters, digits and . _ + - stay; brackets and quotes go, and a list's commas become '+'. What else stands there is
/// lost.
std::string plain_text(const std::string& text) {
    std::string plain;
    bool lost = false;
    for (size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (is_letter || std::string_view("._+-").find(c) != std::string_view::npos) {
            plain += c;
        } else if (c == ',') {
            plain += '+';
        } else if (std::string_view("[]{}\"'").find(c) == std::string_view::npos &&
                   !(c == ' ' && i > 0 && text[i - 1] == ',')) {
            plain += '_';
            lost = true;
        }
    }
    return told_apart(plain, kLongestPlain, lost, text);
}

/// Where a value ends that begins at `begin`: at a comma outside of brackets and quotes, or with the text. Empty when a
/// bracket or quote is not closed; then `open` is its place.
std::optional<size_t> end_of_value(std::string_view text, size_t begin, size_t& open) {
    std::vector<std::pair<char, size_t>> closers;  // what is waited for, and since where
    bool is_first = true;                          // nothing but blanks so far
    for (size_t at = begin; at < text.size(); ++at) {
        const char c = text[at];
        if (c == ',' && closers.empty()) return at;
        const bool is_quote = (c == '"' || c == '\'') && (is_first || !closers.empty());
        if (is_quote) {
            open = at;
            for (++at; at < text.size() && text[at] != c; ++at) at += c == '"' && text[at] == '\\';
            if (at >= text.size()) return std::nullopt;
        } else if (c == '[' || c == '{') {
            closers.emplace_back(c == '[' ? ']' : '}', at);
        } else if (!closers.empty() && c == closers.back().first) {
            closers.pop_back();
        }
        is_first = is_first && c == ' ';
    }
    if (closers.empty()) return text.size();
    open = closers.back().second;
    return std::nullopt;
}

/// Reads one argument; what is wrong with it goes to `problems`.
class AxisReader {
  public:
    AxisReader(const std::string& argument, std::vector<Problem>& problems) : text_(argument), problems_(problems) {}

    GridAxis read() {
        GridAxis axis{text_, "", {}};
        const auto control = std::find_if(text_.begin(), text_.end(), is_control);
        const size_t equals = text_.find('=');
        if (control != text_.end()) {
            fail(static_cast<size_t>(control - text_.begin()), "there is a control character; leave it out");
        } else if (equals == std::string::npos || equals == 0) {
            fail(0, std::string("this names no key with values (expected ") + kForm +
                        "); try --grid optimizer.lr=1e-3,3e-3");
        } else if (text_.substr(0, equals) == "run.dir") {
            fail(0, "every run gets a folder of its own here; choose where these lie by --folder");
        } else {
            axis.key = text_.substr(0, equals);
            read_values(axis, equals + 1);
        }
        return axis;
    }

  private:
    void fail(size_t at, const std::string& message) {
        problems_.push_back({message, SourcePosition{"--grid", 1, column_of(text_, at), text_}});
    }

    void read_values(GridAxis& axis, size_t begin) {
        for (;; ++begin) {
            size_t open = 0;
            const std::optional<size_t> end = end_of_value(text_, begin, open);
            if (!end)
                return fail(open, std::string("this ") + text_[open] +
                                      " is not closed; a text that holds one stands in quotes");
            add_value(axis, begin, *end);
            begin = *end;
            if (begin == text_.size()) return;
        }
    }

    void add_value(GridAxis& axis, size_t begin, size_t end) {
        while (begin < end && text_[begin] == ' ') ++begin;
        while (begin < end && text_[end - 1] == ' ') --end;
        if (begin == end) return fail(begin, "a value is missing here; an empty text is \"\"");
        const std::string text = text_.substr(begin, end - begin);
        const std::string plain = plain_text(text);
        const bool is_there = std::any_of(axis.values.begin(), axis.values.end(),
                                          [&](const GridValue& value) { return value.plain == plain; });
        if (is_there) return fail(begin, "this value stands here twice, or in other brackets or quotes; leave one out");
        axis.values.push_back({text, plain, column_of(text_, begin)});
    }

    const std::string& text_;
    std::vector<Problem>& problems_;
};

void check_keys(const std::vector<GridAxis>& axes, std::vector<Problem>& problems) {
    for (size_t i = 0; i < axes.size(); ++i) {
        const auto before = axes.begin() + static_cast<std::ptrdiff_t>(i);
        const bool is_twice = !axes[i].key.empty() && std::any_of(axes.begin(), before, [&](const GridAxis& other) {
            return other.key == axes[i].key;
        });
        if (!is_twice) continue;
        problems.push_back({axes[i].key + " is in the grid twice; give all its values to one --grid",
                            SourcePosition{"--grid", 1, 1, axes[i].argument}});
    }
}

void check_count(const std::vector<GridAxis>& axes, std::vector<Problem>& problems) {
    size_t count = 1;
    std::string factors;
    for (const GridAxis& axis : axes) {
        count = std::min(count * axis.values.size(), kMostCombinations * kMostCombinations);
        factors += (factors.empty() ? "" : " x ") + std::to_string(axis.values.size());
    }
    if (count <= kMostCombinations) return;
    problems.push_back({"the grid has too many combinations (got " + factors + ", expected at most " +
                            std::to_string(kMostCombinations) + "); leave values out",
                        std::nullopt});
}

}  // namespace

std::vector<GridAxis> parse_grid(const std::vector<std::string>& arguments) {
    std::vector<Problem> problems;
    std::vector<GridAxis> axes;
    for (const std::string& argument : arguments) axes.push_back(AxisReader(argument, problems).read());
    check_keys(axes, problems);
    check_count(axes, problems);
    if (!problems.empty()) throw Error(ErrorKind::Plan, std::move(problems));
    return axes;
}

std::vector<Combination> combinations_of(const std::vector<GridAxis>& axes) {
    std::vector<Combination> all{{}};
    for (const GridAxis& axis : axes) {
        std::vector<Combination> longer;
        for (const Combination& shorter : all) {
            for (const GridValue& value : axis.values) {
                Combination next = shorter;
                next.settings.push_back(axis.key + '=' + value.text);
                next.name += (next.name.empty() ? "" : ",") + plain_text(axis.key) + '=' + value.plain;
                longer.push_back(std::move(next));
            }
        }
        all = std::move(longer);
    }
    for (Combination& one : all) one.name = told_apart(one.name, kLongestName, false, one.name);
    return all;
}

Problem in_grid(Problem problem, const std::vector<GridAxis>& axes) {
    if (!problem.position || problem.position->source != "--set") return problem;
    SourcePosition& position = *problem.position;
    for (const GridAxis& axis : axes) {
        const int value_column = column_of(axis.key, axis.key.size()) + 1;
        for (const GridValue& value : axis.values) {
            if (position.text != axis.key + '=' + value.text) continue;
            const int shift = position.column >= value_column ? value.column - value_column : 0;
            position = {"--grid", position.line, position.column + shift, axis.argument};
            return problem;
        }
    }
    return problem;
}

}  // namespace vpp
