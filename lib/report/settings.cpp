#include "report/settings.hpp"

#include <algorithm>
#include <charconv>

#include "plan/document.hpp"
#include "plan/value.hpp"

namespace vpp {

namespace {

std::string value_text(const Node& node);

std::string list_text(const Node& node) {
    std::string text;
    for (const Node& child : node.children) {
        const std::string key = child.key.empty() ? "" : child.key + " = ";
        text += (text.empty() ? "" : ", ") + key + value_text(child);
    }
    return node.kind == Node::Kind::Array ? "[" + text + "]" : "{" + text + "}";
}

std::string value_text(const Node& node) {
    switch (node.kind) {
        case Node::Kind::Boolean:
            return node.boolean ? "true" : "false";
        case Node::Kind::Integer:
            return std::to_string(node.integer);
        case Node::Kind::Number:
            return toml_text(node.number);
        case Node::Kind::Array:
        case Node::Kind::Table:
            return list_text(node);
        default:
            return node.text;
    }
}

bool is_table_list(const Node& node) {
    return node.kind == Node::Kind::Array && !node.children.empty() &&
           std::all_of(node.children.begin(), node.children.end(),
                       [](const Node& child) { return child.kind == Node::Kind::Table; });
}

void flatten(const Node& node, const std::string& name, Settings& settings) {
    if (node.kind == Node::Kind::Table) {
        for (const Node& child : node.children)
            flatten(child, name.empty() ? child.key : name + "." + child.key, settings);
    } else if (is_table_list(node)) {
        for (size_t i = 0; i < node.children.size(); ++i) {
            flatten(node.children[i], name + "[" + std::to_string(i) + "]", settings);
        }
    } else {
        settings.emplace_back(name, value_text(node));
    }
}

}  // namespace

Settings settings_from_plan(const std::string& plan_text) {
    PlanSources sources;
    Settings settings;
    flatten(parse_document(sources, "plan.toml", plan_text), "", settings);
    return settings;
}

std::optional<std::string> setting(const Settings& settings, const std::string& key) {
    const auto found =
        std::find_if(settings.begin(), settings.end(), [&](const auto& one) { return one.first == key; });
    return found == settings.end() ? std::nullopt : std::optional(found->second);
}

std::optional<int> count_setting(const Settings& settings, const std::string& key) {
    const std::string text = setting(settings, key).value_or("");
    int count = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    const bool is_count = error == std::errc() && end == text.data() + text.size() && count >= 1;
    return is_count ? std::optional(count) : std::nullopt;
}

std::vector<Difference> differences(const std::vector<Settings>& runs) {
    std::vector<std::string> keys;
    for (const Settings& settings : runs) {
        for (const auto& [key, value] : settings) {
            if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
        }
    }
    std::vector<Difference> found;
    for (const std::string& key : keys) {
        Difference difference{key, {}};
        for (const Settings& settings : runs) difference.values.push_back(setting(settings, key));
        const auto& values = difference.values;
        const bool differs =
            std::any_of(values.begin(), values.end(), [&](const auto& one) { return one != values[0]; });
        if (differs && key != "run.dir") found.push_back(std::move(difference));
    }
    return found;
}

}  // namespace vpp
