#include "plan/plan_text.hpp"

#include <set>

#include "plan/keys.hpp"
#include "plan/paths.hpp"

namespace vpp {

namespace {

/// The value with its paths as the plan's author wrote them.
Value as_written(const Key& key, Value value, const std::string& plan_file) {
    if (key.type != KeyType::Path && key.type != KeyType::Files) return value;
    if (auto* text = std::get_if<std::string>(&value)) *text = written_path(plan_file, *text);
    if (auto* list = std::get_if<std::vector<std::string>>(&value)) {
        for (std::string& path : *list) path = written_path(plan_file, path);
    }
    if (auto* table = std::get_if<NamedTexts>(&value)) {
        for (auto& entry : *table) entry.second = written_path(plan_file, entry.second);
    }
    return value;
}

/// The lines of all keys of one section.
std::string section_lines(const Plan& plan, const std::string& section, size_t entry) {
    std::string lines;
    for (const Key& key : all_keys()) {
        if (key.type == KeyType::TableList || section_of(key) != section) continue;
        if (const auto value = key.field.get(plan, entry)) {
            lines += key.name.substr(section.size() + 1) + " = " + toml_text(as_written(key, *value, plan.file)) + '\n';
        }
    }
    return lines;
}

/// How many tables a list of tables has; -1 for any other section.
int num_tables(const Plan& plan, const std::string& section) {
    if (section == "model.init") return static_cast<int>(plan.model.init.size());
    if (section == "optimizer.group") return static_cast<int>(plan.optimizer.groups.size());
    if (section == "data.transform") return static_cast<int>(plan.data.transforms.size());
    if (section == "pipeline.stage") return static_cast<int>(plan.pipeline.stages.size());
    return -1;
}

}  // namespace

std::string plan_text(const Plan& plan) {
    std::string text;
    std::set<std::string> written;
    for (const Key& key : all_keys()) {
        const std::string section = section_of(key);
        if (key.type == KeyType::TableList || !written.insert(section).second) continue;
        const int tables = num_tables(plan, section);
        for (int entry = 0; entry < tables; ++entry) {
            text += "[[" + section + "]]\n" + section_lines(plan, section, static_cast<size_t>(entry));
        }
        if (tables >= 0) continue;
        const std::string lines = section_lines(plan, section, 0);
        if (!lines.empty()) text += '[' + section + "]\n" + lines;
    }
    return text;
}

}  // namespace vpp
