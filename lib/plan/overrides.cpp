#include "plan/overrides.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include "plan/bounds.hpp"

namespace vpp {

namespace {

constexpr size_t kLongestArgument = 1 << 16;
constexpr size_t kMostParts = 8;

/// One step into the tree: an entry of a table or of an array.
struct Step {
    std::string key;              ///< of a table; empty for an array
    std::optional<size_t> index;  ///< of an array
    int column = 1;               ///< in the argument
};

bool is_key_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/// "a.b[0].c" as steps; empty when it is not of that form.
std::vector<Step> parse_path(std::string_view path) {
    std::vector<Step> steps;
    size_t at = 0;
    while (at < path.size() && steps.size() < kMostParts) {
        const int column = static_cast<int>(at) + 1;
        if (path[at] == '[') {
            size_t index = 0;
            const char* begin = path.data() + at + 1;
            const auto [end, error] = std::from_chars(begin, path.data() + path.size(), index);
            if (steps.empty() || error != std::errc() || end == path.data() + path.size() || *end != ']') return {};
            steps.push_back({"", index, column});
            at = static_cast<size_t>(end - path.data()) + 1;
        } else {
            const size_t begin = at;
            while (at < path.size() && is_key_letter(path[at])) ++at;
            if (at == begin) return {};
            steps.push_back({std::string(path.substr(begin, at - begin)), std::nullopt, column});
        }
        if (at == path.size()) return steps;
        if (path[at] == '.') {
            if (++at == path.size() || path[at] == '[') return {};
        } else if (path[at] != '[') {
            return {};
        }
    }
    return {};
}

/// The child that a step leads to; made when it is an entry of a table. nullptr, with a problem, when there is none.
Node* follow(Node& parent, const Step& step, const Place& place, std::string_view path, Problems& problems) {
    const std::string above(path.substr(0, static_cast<size_t>(step.column - 1)));
    if (step.index) {
        if (parent.kind != Node::Kind::Array) {
            problems.add(place, above + " is not a list, so it has no entry " + std::to_string(*step.index) +
                                    "; set the whole key instead");
            return nullptr;
        }
        if (*step.index < parent.children.size()) return &parent.children[*step.index];
        problems.add(place, above + " has no entry " + std::to_string(*step.index) + " (got " +
                                std::to_string(parent.children.size()) + " entries, counted from 0)");
        return nullptr;
    }
    if (parent.kind != Node::Kind::Table) {
        const bool list = parent.kind == Node::Kind::Array;
        problems.add(place, above.substr(0, above.size() - 1) +
                                (list ? " is a list; name the entry, as in [0]" : " is a value, not a section"));
        return nullptr;
    }
    if (Node* child = parent.find(step.key)) return child;
    Node child;
    child.place = place;
    child.key = step.key;
    child.key_place = place;
    parent.children.push_back(std::move(child));
    return &parent.children.back();
}

/// The value of an argument: TOML, else the text itself.
Node read_override_value(std::string_view text, const Place& start) {
    if (auto node = parse_value(text, start)) return std::move(*node);
    Node node;
    node.kind = Node::Kind::Text;
    node.place = start;
    node.text = std::string(text);
    return node;
}

}  // namespace

void apply_override(Node& root, const std::string& argument, PlanSources& sources, Problems& problems) {
    const bool too_long = argument.size() > kLongestArgument;
    const int source = sources.add("--set", too_long ? "" : argument);
    if (too_long) {
        return problems.add({source, 0, 0}, "the argument is too long (at most 65536 bytes); write it into the plan");
    }
    const auto bounds = check_plain_bounds(argument);
    if (bounds) return problems.add({source, bounds->line, bounds->column}, bounds->message);
    const size_t equals = argument.find('=');
    const std::string_view path = std::string_view(argument).substr(0, std::min(equals, argument.size()));
    const std::vector<Step> steps = parse_path(path);
    if (equals == std::string::npos || steps.empty()) {
        return problems.add({source, 1, 1},
                            "this does not set a key (expected section.key=value); try --set train.steps=100");
    }
    Node* target = &root;
    for (const Step& step : steps) {
        target = follow(*target, step, {source, 1, step.column}, path, problems);
        if (!target) return;
    }
    const Place start{source, 1, static_cast<int>(equals) + 2};
    Node value = read_override_value(std::string_view(argument).substr(equals + 1), start);
    value.key = target->key;
    value.key_place = {source, 1, steps.back().column};
    *target = std::move(value);
}

}  // namespace vpp
