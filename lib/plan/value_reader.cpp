#include "plan/value_reader.hpp"

#include <algorithm>
#include <cmath>

#include "base/suggest.hpp"
#include "base/units.hpp"
#include "plan/foreign_keys.hpp"
#include "plan/key_facts.hpp"

namespace vpp {

namespace {

constexpr size_t kLongestShownText = 60;

std::string shown(const std::string& text) {
    const std::string clean = printable(text);
    return clean.size() <= kLongestShownText ? clean : clean.substr(0, kLongestShownText) + "...";
}

std::string describe(const Node& node) {
    switch (node.kind) {
        case Node::Kind::Boolean:
            return node.boolean ? "boolean true" : "boolean false";
        case Node::Kind::Integer:
            return "integer " + std::to_string(node.integer);
        case Node::Kind::Number:
            return std::isfinite(node.number) ? "number " + toml_text(node.number) : "no finite number";
        case Node::Kind::Text:
            return "text '" + shown(node.text) + "'";
        case Node::Kind::Date:
            return "a date or time";
        case Node::Kind::Array:
            return "a list of " + std::to_string(node.children.size());
        case Node::Kind::Table:
            return "a table";
    }
    return "";
}

/// Reads the value of one key; every read_ function gives nothing after it has added a problem.
class ValueReader {
  public:
    ValueReader(const Key& key, const std::string& name, const Names& names, Problems& problems)
        : key_(key), name_(name), names_(names), problems_(problems) {}

    std::optional<Value> read(const Node& node) {
        switch (key_.type) {
            case KeyType::Boolean:
                if (node.kind == Node::Kind::Boolean) return Value(node.boolean);
                return wrong_type(node);
            case KeyType::Integer:
                return read_integer(node);
            case KeyType::Number:
                return read_number(node);
            case KeyType::Choice:
            case KeyType::Name:
                return read_word(node);
            case KeyType::Text:
            case KeyType::Path:
                return read_text(node);
            case KeyType::TextList:
                return read_texts(node);
            case KeyType::IntegerList:
                return read_numbers<int64_t>(node);
            case KeyType::NumberList:
                return read_numbers<double>(node);
            case KeyType::Files:
                if (node.kind == Node::Kind::Array) return read_texts(node);
                return read_table(node);
            case KeyType::TextTable:
                return read_table(node);
            case KeyType::Size:
                return node.kind == Node::Kind::Text ? read_bytes(node) : read_number(node);
            case KeyType::TableList:
                break;
        }
        return wrong_type(node);
    }

  private:
    std::nullopt_t problem(const Node& node, const std::string& message) {
        problems_.add(node.place, name_ + ' ' + message);
        return std::nullopt;
    }

    std::nullopt_t wrong_type(const Node& node) {
        return problem(node, "has the wrong type (got " + describe(node) + ", expected " + type_text(key_.type) + ')' +
                                 remedy(node));
    }

    /// Whether a value is of the kind that the key wants.
    bool has_wanted_kind(const Node& node) const {
        using Kind = Node::Kind;
        switch (key_.type) {
            case KeyType::Boolean:
                return node.kind == Kind::Boolean;
            case KeyType::Integer:
                return node.kind == Kind::Integer;
            case KeyType::Number:
            case KeyType::Size:
                return node.kind == Kind::Integer || node.kind == Kind::Number;
            case KeyType::IntegerList:
            case KeyType::NumberList:
            case KeyType::TextList:
                return node.kind == Kind::Array;
            case KeyType::Files:
                return node.kind == Kind::Array || node.kind == Kind::Table;
            case KeyType::TextTable:
                return node.kind == Kind::Table;
            default:
                return false;
        }
    }

    /// Whether a text is the numbers of such a list, without the brackets.
    bool holds_numbers(const Node& text) const {
        if (key_.type != KeyType::IntegerList && key_.type != KeyType::NumberList) return false;
        const auto list = parse_value('[' + text.text + ']', text.place);
        return list && list->kind == Node::Kind::Array && !list->children.empty() &&
               std::ranges::all_of(list->children, [&](const Node& item) {
                   const bool is_number = item.kind == Node::Kind::Number && key_.type == KeyType::NumberList;
                   return is_number || item.kind == Node::Kind::Integer;
               });
    }

    std::string remedy_of_text(const Node& node) const {
        const auto meant = parse_value(node.text, node.place);
        if (meant && has_wanted_kind(*meant)) return "; write it without quotes";
        const bool fits = shown(node.text) == node.text;
        const bool wants_list = key_.type == KeyType::TextList || key_.type == KeyType::Files;
        if (wants_list && fits && !node.text.empty()) return "; try [" + toml_quoted(node.text) + ']';
        return fits && holds_numbers(node) ? "; write it as a list: [" + node.text + ']' : "";
    }

    /// What to write, where the value is nearly right.
    std::string remedy(const Node& node) const {
        if (node.kind == Node::Kind::Text) return remedy_of_text(node);
        const bool wants_text = key_.type == KeyType::Text || key_.type == KeyType::Path ||
                                key_.type == KeyType::Choice || key_.type == KeyType::Name;
        const bool is_word = node.kind != Node::Kind::Array && node.kind != Node::Kind::Table;
        if (is_word && wants_text) {
            const auto example = example_value(key_, names_);
            const auto* text = example ? std::get_if<std::string>(&*example) : nullptr;
            return "; try text in quotes" + (text ? ", such as " + toml_quoted(*text) : "");
        }
        const bool whole =
            node.kind == Node::Kind::Number && std::abs(node.number) < 1e15 && std::floor(node.number) == node.number;
        if (whole && key_.type == KeyType::Integer) {
            return "; try " + std::to_string(static_cast<int64_t>(node.number));
        }
        return "";
    }

    bool in_range(const Node& node, double value) {
        if (std::isfinite(value) && key_.range.contains(value)) return true;
        const std::string range = key_.range.text();
        problem(node, "is out of range (got " + describe(node) + ", expected " +
                          (range.empty() ? "a finite number" : range) + ')' +
                          (key_.range_reason.empty() ? "" : "; " + key_.range_reason));
        return false;
    }

    std::optional<Value> read_integer(const Node& node) {
        if (node.kind == Node::Kind::Text && !key_.word.empty()) {
            if (node.text == key_.word) return Value(node.text);
            return problem(node, "is no number (got '" + shown(node.text) + "', expected an integer or \"" + key_.word +
                                     "\")" + remedy(node));
        }
        if (node.kind != Node::Kind::Integer) return wrong_type(node);
        if (!in_range(node, static_cast<double>(node.integer))) return std::nullopt;
        return Value(node.integer);
    }

    std::optional<double> number_of(const Node& node) {
        if (node.kind != Node::Kind::Number && node.kind != Node::Kind::Integer) return std::nullopt;
        return node.kind == Node::Kind::Number ? node.number : static_cast<double>(node.integer);
    }

    std::optional<Value> read_number(const Node& node) {
        const auto number = number_of(node);
        if (!number) return wrong_type(node);
        if (!in_range(node, *number)) return std::nullopt;
        return Value(*number);
    }

    std::optional<Value> read_bytes(const Node& node) {
        const auto bytes = parse_bytes(node.text);
        if (bytes && *bytes > 0) return Value(node.text);
        return problem(node, "is no number of bytes (got '" + shown(node.text) +
                                 "', expected such as \"8GiB\" or \"512 MiB\")" + remedy(node));
    }

    /// Whether the word that a node means is known but cannot be used yet; says so.
    bool planned(const Node& node, const std::string& word) {
        const auto found = std::ranges::find(key_.planned, word, &PlannedWord::word);
        if (found == key_.planned.end()) return false;
        const auto& usable = usable_words(key_, names_);
        problem(node, "'" + node.text + "' " + found->reason +
                          (usable.empty() ? "" : " (built: " + joined_words(usable) + ')'));
        return true;
    }

    std::optional<Value> read_word(const Node& node) {
        if (node.kind != Node::Kind::Text) return wrong_type(node);
        std::string word = node.text;
        for (const auto& [alias, meant] : key_.aliases) {
            if (node.text == alias) word = meant;
        }
        const auto& usable = usable_words(key_, names_);
        if (std::ranges::find(usable, word) != usable.end()) return Value(word);
        if (planned(node, word)) return std::nullopt;
        std::vector<std::string> known = usable;
        for (const PlannedWord& planned_word : key_.planned) known.push_back(planned_word.word);
        const std::string foreign = foreign_precision(node.text);
        const bool is_precision = std::ranges::find(known, foreign) != known.end();
        return problem(node, "does not know '" + shown(node.text) + "' (expected one of " +
                                 (usable.empty() ? "nothing" : joined_words(usable)) + ')' +
                                 did_you_mean(is_precision ? foreign : node.text, known));
    }

    bool clean(const Node& node, const std::string& text) {
        const bool may_be_empty = key_.type == KeyType::Path && !key_.required;  // no file
        const bool is_clean = printable(text) == text && (!text.empty() || may_be_empty);
        if (!is_clean)
            problem(node, text.empty() ? "is empty" : "holds a control character (got '" + shown(text) + "')");
        return is_clean;
    }

    std::optional<Value> read_text(const Node& node) {
        if (node.kind != Node::Kind::Text) return wrong_type(node);
        return clean(node, node.text) ? std::optional<Value>(node.text) : std::nullopt;
    }

    std::optional<Value> read_texts(const Node& node) {
        if (node.kind != Node::Kind::Array) return wrong_type(node);
        std::vector<std::string> texts;
        bool good = true;
        for (const Node& item : node.children) {
            if (item.kind != Node::Kind::Text) {
                problem(item, "holds an entry of the wrong type (got " + describe(item) + ", expected text)");
                good = false;
            } else {
                good = clean(item, item.text) && good;
                texts.push_back(item.text);
            }
        }
        return good ? std::optional<Value>(std::move(texts)) : std::nullopt;
    }

    /// Whether a list has as many entries as the key says.
    bool has_length(const Node& node) {
        const size_t length = node.children.size();
        if (key_.list_size == 0 ? length > 0 : length == key_.list_size) return true;
        const std::string expected = key_.list_size == 0 ? "at least 1" : std::to_string(key_.list_size);
        problem(node, "has the wrong length (got " + counted_text(static_cast<int64_t>(length), "number") +
                          ", expected " + expected + ')');
        return false;
    }

    template <typename T>
    std::optional<Value> read_numbers(const Node& node) {
        if (node.kind != Node::Kind::Array) return wrong_type(node);
        if (!has_length(node)) return std::nullopt;
        constexpr bool kWhole = std::is_same_v<T, int64_t>;
        std::vector<T> numbers;
        for (const Node& item : node.children) {
            const auto number = number_of(item);
            if (!number || (kWhole && item.kind != Node::Kind::Integer)) {
                return problem(item, "holds an entry of the wrong type (got " + describe(item) + ", expected " +
                                         (kWhole ? "integer)" : "number)"));
            }
            if (!in_range(item, *number)) return std::nullopt;
            numbers.push_back(static_cast<T>(*number));
        }
        return Value(std::move(numbers));
    }

    std::optional<Value> read_table(const Node& node) {
        if (node.kind != Node::Kind::Table) return wrong_type(node);
        NamedTexts entries;
        bool good = true;
        for (const Node& child : node.children) {
            if (printable(child.key) != child.key || child.key.empty()) {
                problems_.add(child.key_place, name_ + " holds a name that is empty or has control characters");
                good = false;
            }
            if (child.kind != Node::Kind::Text) {
                problem(child, "holds an entry of the wrong type for '" + shown(child.key) + "' (got " +
                                   describe(child) + ", expected text)");
                good = false;
            } else {
                good = clean(child, child.text) && good;
                entries.emplace_back(child.key, child.text);
            }
        }
        return good ? std::optional<Value>(std::move(entries)) : std::nullopt;
    }

    const Key& key_;
    const std::string& name_;
    const Names& names_;
    Problems& problems_;
};

}  // namespace

std::optional<Value> read_value(const Key& key, const std::string& name, const Node& node, const Names& names,
                                Problems& problems) {
    return ValueReader(key, name, names, problems).read(node);
}

}  // namespace vpp
