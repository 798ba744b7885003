#include "plan/reader.hpp"

#include <algorithm>

#include "base/file.hpp"
#include "base/utf8.hpp"
#include "plan/bounds.hpp"
#include "plan/document.hpp"
#include "plan/overrides.hpp"
#include "plan/paths.hpp"
#include "plan/plan_text.hpp"
#include "plan/problems.hpp"
#include "plan/unknown_key.hpp"
#include "plan/value_reader.hpp"

namespace vpp {

namespace {

/// A value that waits to be put into the Plan.
struct Setting {
    const Key* key;
    size_t entry;
    Value value;
};

/// Whether the tree has a value under that dotted name.
bool is_in_text(const Node& table, const std::string& name) {
    const size_t dot = name.find('.');
    const std::string first = name.substr(0, dot);
    return std::ranges::any_of(table.children, [&](const Node& child) {
        return child.key == first && (dot == std::string::npos || is_in_text(child, name.substr(dot + 1)));
    });
}

/// Walks over the tree of a plan and collects settings, positions and problems.
class PlanReader {
  public:
    PlanReader(const Node& root, const PlanSources& sources, const Names& names, Problems& problems)
        : root_(root), sources_(sources), names_(names), problems_(problems) {}

    /// Reads the entries of a table. `section` is its name in the table of keys; `shown` has the indices of entries.
    void read_section(const Node& table, const std::string& section, const std::string& shown, size_t entry) {
        sections_[shown] = table.place;
        for (const Node& child : table.children) {
            const std::string prefix = section.empty() ? "" : section + '.';
            const std::string name = prefix + child.key;
            const std::string shown_name = (shown.empty() ? "" : shown + '.') + child.key;
            const Key* key = find_key(name);
            if (child.key.find('.') != std::string::npos) key = nullptr;  // "a.b" = 1 is not a.b = 1
            if (key && key->type == KeyType::TableList) {
                read_tables(child, name);
            } else if (key) {
                read_key(*key, child, shown_name, entry);
            } else if (is_section(name) && child.key.find('.') == std::string::npos) {
                read_subsection(child, name);
            } else {
                unknown(child, section);
            }
        }
        require_keys(table, section, shown);
    }

    /// Puts what was read into the plan; problems are raised before.
    void fill(Plan& plan) {
        const auto in_group = [](const Setting& setting) { return section_of(*setting.key) == "optimizer.group"; };
        if (sections_.contains("loss")) plan.loss.emplace();
        plan.model.init.resize(num_tables_["model.init"]);
        plan.pipeline.stages.resize(num_tables_["pipeline.stage"]);
        plan.data.transforms.resize(num_tables_["data.transform"]);
        for (Setting& setting : settings_) {
            if (!in_group(setting)) put(plan, setting);
        }
        // A group starts from the optimizer's own values.
        plan.optimizer.groups.resize(num_tables_["optimizer.group"], {{}, plan.optimizer.values});
        for (Setting& setting : settings_) {
            if (in_group(setting)) put(plan, setting);
        }
        plan.positions = std::move(positions_);
    }

    /// [model] and [data] must be there; the others may be left out.
    void require_sections(Node& root) {
        Node missing;
        missing.place = {root.place.source, 0, 0};
        for (const char* section : {"model", "data"}) {
            if (!root.find(section)) require_keys(missing, section, section);
        }
    }

  private:
    void read_key(const Key& key, const Node& node, const std::string& shown, size_t entry) {
        positions_[shown] = sources_.position(node.place);
        for (size_t i = 0; i < node.children.size(); ++i) {
            const Node& child = node.children[i];
            const bool is_list = node.kind == Node::Kind::Array;
            positions_[shown + (is_list ? '[' + std::to_string(i) + ']' : '.' + child.key)] =
                sources_.position(child.place);
        }
        if (auto value = read_value(key, shown, node, names_, problems_)) {
            settings_.push_back({&key, entry, std::move(*value)});
        }
    }

    void read_tables(const Node& node, const std::string& name) {
        if (node.kind != Node::Kind::Array) {
            problems_.add(node.place, name + " is a list of tables; write [[" + name + "]]");
            return;
        }
        positions_[name] = sources_.position(node.place);
        num_tables_[name] = node.children.size();
        for (size_t entry = 0; entry < node.children.size(); ++entry) {
            const Node& table = node.children[entry];
            const std::string shown = name + '[' + std::to_string(entry) + ']';
            positions_[shown] = sources_.position(table.place);
            if (table.kind == Node::Kind::Table) {
                read_section(table, name, shown, entry);
            } else {
                problems_.add(table.place, shown + " is not a table; write [[" + name + "]]");
            }
        }
    }

    void read_subsection(const Node& node, const std::string& name) {
        if (node.kind == Node::Kind::Table) return read_section(node, name, name, 0);
        problems_.add(node.key_place, name + " is a section, not a key; write [" + name + ']');
    }

    void unknown(const Node& child, const std::string& section) {
        const std::string name = printable(child.key);
        const std::string what = section.empty()
                                     ? (child.kind == Node::Kind::Table ? "unknown section '" : "unknown key '")
                                     : "unknown key '";
        const std::string where = section.empty() ? "" : " in [" + section + ']';
        problems_.add(child.key_place, what + name + '\'' + where + unknown_answer(section, child.key));
    }

    void require_keys(const Node& table, const std::string& section, const std::string& shown) {
        for (const Key& key : all_keys()) {
            if (!key.required || section_of(key) != section) continue;
            if (!key.required_unless.empty() && is_in_text(root_, key.required_unless)) continue;
            const std::string part = last_part(key.name);
            const bool written =
                std::ranges::any_of(table.children, [&](const Node& child) { return child.key == part; });
            if (!written) problems_.add(table.place, shown + '.' + part + " is missing: " + key.sentence);
        }
    }

    static void put(Plan& plan, Setting& setting) {
        if (setting.key->type == KeyType::Path || setting.key->type == KeyType::Files) {
            resolve_paths(setting.value, plan.file);
        }
        setting.key->field.set(plan, setting.entry, setting.value);
    }

    static void resolve_paths(Value& value, const std::string& file) {
        auto* text = std::get_if<std::string>(&value);
        if (text && !text->empty()) *text = resolved_path(file, *text);
        if (auto* list = std::get_if<std::vector<std::string>>(&value)) {
            for (std::string& path : *list) path = resolved_path(file, path);
        }
        if (auto* table = std::get_if<NamedTexts>(&value)) {
            for (auto& entry : *table) entry.second = resolved_path(file, entry.second);
        }
    }

    const Node& root_;
    const PlanSources& sources_;
    const Names& names_;
    Problems& problems_;
    std::vector<Setting> settings_;
    std::map<std::string, SourcePosition> positions_;
    std::map<std::string, Place> sections_;
    std::map<std::string, size_t> num_tables_;  ///< by list of tables
};

/// The plan's name makes the default run folder, so it must be a plain name, and UTF-8 as all that a plan holds.
std::string name_of(const std::string& file_name) {
    const std::string stem = std::filesystem::path(file_name).stem().string();
    return is_plain_name(stem) && as_utf8(stem) == stem ? stem : "plan";
}

}  // namespace

Plan parse_plan(std::string_view text, const std::string& file_name, const std::vector<std::string>& overrides,
                const Names& names) {
    PlanSources sources;
    Problems problems;
    Node root = parse_document(sources, printable(file_name), text);
    for (const std::string& argument : overrides) apply_override(root, argument, sources, problems);
    PlanReader reader(root, sources, names, problems);
    reader.read_section(root, "", "", 0);
    reader.require_sections(root);
    problems.raise(sources);
    Plan plan;
    plan.file = file_name;
    plan.name = name_of(file_name);
    plan.settings = overrides;
    reader.fill(plan);
    plan.resolved_text = plan_text(plan);
    return plan;
}

Plan load_plan(const std::filesystem::path& path, const std::vector<std::string>& overrides, const Names& names) {
    std::string text;
    try {
        text = read_text_file(path, kPlanLimitBytes);
    } catch (const Error& error) {
        // What a data file does wrong with 65, a plan does with 78.
        if (error.kind() == ErrorKind::BadData) throw Error(ErrorKind::Plan, error.what());
        throw;
    }
    return parse_plan(text, path.string(), overrides, names);
}

}  // namespace vpp
