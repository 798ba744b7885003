#include "plan/document.hpp"

// The library asserts some things that a bad text can break ("[.a]") and then reports them as errors itself.
#define TOML_ASSERT(condition) static_cast<void>(0)

#include <toml++/toml.h>

#include <algorithm>
#include <utility>

#include "plan/bounds.hpp"

namespace vpp {

namespace {

constexpr size_t kLongestShownLine = 4096;

/// Turns the library's tree into ours. The depth is small: bounds are checked before the library runs.
class Converter {
  public:
    explicit Converter(int source) : source_(source) {}

    Node convert(const toml::node& from) {
        if (++num_values_ > kPlanLimitValues) {
            too_many_ = too_many_ ? too_many_ : place(from.source());
            return {};
        }
        Node node;
        node.place = place(from.source());
        if (const auto* table = from.as_table()) {
            convert_table(*table, node);
        } else if (const auto* array = from.as_array()) {
            node.kind = Node::Kind::Array;
            for (const toml::node& item : *array) node.children.push_back(convert(item));
        } else {
            convert_scalar(from, node);
        }
        return node;
    }

    /// Where the bound on the number of values was passed.
    const std::optional<Place>& too_many() const { return too_many_; }

  private:
    Place place(const toml::source_region& region) const {
        return {source_, static_cast<int>(region.begin.line), static_cast<int>(region.begin.column)};
    }

    void convert_table(const toml::table& from, Node& node) {
        node.kind = Node::Kind::Table;
        for (const auto& [key, value] : from) {
            Node child = convert(value);
            child.key = std::string(key.str());
            child.key_place = place(key.source());
            node.children.push_back(std::move(child));
        }
        std::ranges::stable_sort(node.children, {}, &Node::key_place);  // the library sorts by name
    }

    static void convert_scalar(const toml::node& from, Node& node) {
        if (const auto* boolean = from.as_boolean()) {
            node.kind = Node::Kind::Boolean;
            node.boolean = boolean->get();
        } else if (const auto* integer = from.as_integer()) {
            node.kind = Node::Kind::Integer;
            node.integer = integer->get();
        } else if (const auto* number = from.as_floating_point()) {
            node.kind = Node::Kind::Number;
            node.number = number->get();
        } else if (const auto* text = from.as_string()) {
            node.kind = Node::Kind::Text;
            node.text = text->get();
        } else {
            node.kind = Node::Kind::Date;
        }
    }

    int source_;
    size_t num_values_ = 0;
    std::optional<Place> too_many_;
};

std::string syntax_message(const toml::parse_error& error) {
    return "this is not TOML: " + printable(error.description());
}

}  // namespace

int PlanSources::add(std::string name, std::string text) {
    Source source{std::move(name), std::move(text), {0}};
    for (size_t i = 0; i < source.text.size(); ++i) {
        if (source.text[i] == '\n') source.line_starts.push_back(i + 1);
    }
    sources_.push_back(std::move(source));
    return static_cast<int>(sources_.size()) - 1;
}

SourcePosition PlanSources::position(const Place& place) const {
    const Source& source = sources_.at(static_cast<size_t>(place.source));
    SourcePosition position{source.name, place.line, place.column, ""};
    const auto line = static_cast<size_t>(place.line);
    if (line == 0 || line > source.line_starts.size()) return position;
    const size_t begin = source.line_starts[line - 1];
    size_t end = line < source.line_starts.size() ? source.line_starts[line] - 1 : source.text.size();
    if (end > begin && source.text[end - 1] == '\r') --end;
    if (end - begin <= kLongestShownLine) position.text = source.text.substr(begin, end - begin);
    return position;
}

Node* Node::find(std::string_view name) {
    const auto found = std::ranges::find(children, name, &Node::key);
    return found == children.end() ? nullptr : &*found;
}

Node parse_document(PlanSources& sources, const std::string& name, std::string_view text) {
    // An oversized text is not worth a copy: its problem has no line.
    const auto problem = check_bounds(text);
    const int source = sources.add(name, std::string(problem && problem->line == 0 ? "" : text));
    if (problem) {
        throw Error(ErrorKind::Plan, problem->message, sources.position({source, problem->line, problem->column}));
    }
    Converter converter(source);
    Node root;
    try {
        root = converter.convert(toml::parse(text));
    } catch (const toml::parse_error& error) {
        const auto& begin = error.source().begin;
        const Place place{source, static_cast<int>(begin.line), static_cast<int>(begin.column)};
        throw Error(ErrorKind::Plan, syntax_message(error), sources.position(place));
    }
    if (const auto& place = converter.too_many()) {
        throw Error(ErrorKind::Plan,
                    "the plan holds too many values (at most " + std::to_string(kPlanLimitValues) + ")",
                    sources.position(*place));
    }
    return root;
}

std::optional<Node> parse_value(std::string_view text, const Place& start) {
    if (text.find('\n') != std::string_view::npos || check_bounds(text)) return std::nullopt;
    try {
        const std::string prefix = "x = ";
        const toml::table table = toml::parse(prefix + std::string(text));
        Converter converter(start.source);
        Node node = converter.convert(*table.get("x"));
        if (converter.too_many()) return std::nullopt;
        const auto shift = [&](auto& self, Node& moved) -> void {
            for (Place* place : {&moved.place, &moved.key_place}) {
                place->line = start.line;
                place->column += start.column - 1 - static_cast<int>(prefix.size());
            }
            for (Node& child : moved.children) self(self, child);
        };
        shift(shift, node);
        return node;
    } catch (const toml::parse_error&) {
        return std::nullopt;
    }
}

}  // namespace vpp
