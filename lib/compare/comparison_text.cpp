#include "compare/comparison_text.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "compare/plot_text.hpp"
#include "compare/run_curves.hpp"

namespace vpp {

namespace {

constexpr size_t kMostSettingColumns = 6;
constexpr int kShortestValue = 12;  // a setting's value may be cut off to it

/// Names for columns: the last part of a key where no other key ends in it.
std::vector<std::string> column_names(const std::vector<Difference>& differences) {
    std::vector<std::string> parts;
    for (const Difference& one : differences) parts.push_back(one.key.substr(one.key.rfind('.') + 1));
    std::vector<std::string> names;
    for (size_t i = 0; i < parts.size(); ++i) {
        const bool is_unique = std::count(parts.begin(), parts.end(), parts[i]) == 1;
        names.push_back(printable(is_unique ? parts[i] : differences[i].key));
    }
    return names;
}

std::string value_text(const std::optional<std::string>& value) {
    return value ? printable(*value) : "-";
}

std::string run_list(const Comparison& comparison) {
    std::string text;
    for (const ComparedRun& run : comparison.runs) text += run.mark + "  " + printable(run.record.name) + "\n";
    return text;
}

/// A row a setting, a column a run.
std::string settings_table(const Comparison& comparison, const TextStyle& style) {
    std::vector<TextColumn> columns{{"setting", true}};
    for (const ComparedRun& run : comparison.runs) columns.push_back({run.mark, true, kShortestValue});
    TextTable table(columns, 1);
    for (const Difference& difference : comparison.differences) {
        std::vector<TextCell> row{{printable(difference.key)}};
        for (const auto& value : difference.values) row.push_back({value_text(value)});
        table.add(std::move(row));
    }
    return table.text(style);
}

/// A row a run: with the settings that differ where `with_settings`, and its results.
std::string results_table(const Comparison& comparison, bool with_settings, const TextStyle& style) {
    std::vector<TextColumn> columns{{"run", true}};
    if (with_settings) {
        for (const std::string& name : column_names(comparison.differences)) {
            columns.push_back({name, false, kShortestValue});
        }
    }
    columns.push_back({"state", true});
    std::vector<RunSummary> summaries;
    for (const ComparedRun& run : comparison.runs) summaries.push_back(run.summary);
    const auto figures = figures_of_runs(summaries);
    for (const SummaryFigure& figure : figures.empty() ? summary_figures({}) : figures[0]) {
        columns.push_back({figure.short_name.empty() ? figure.name : figure.short_name});
    }
    TextTable table(columns, 1);
    for (size_t i = 0; i < comparison.runs.size(); ++i) {
        const ComparedRun& run = comparison.runs[i];
        std::vector<TextCell> row{{run.mark}};
        if (with_settings) {
            for (const Difference& one : comparison.differences) row.push_back({value_text(one.values[i])});
        }
        row.push_back({run.state});
        for (const SummaryFigure& figure : figures[i]) {
            row.push_back({figure.value.empty() ? "-" : figure.value});
        }
        table.add(std::move(row));
    }
    return table.text(style);
}

/// Why runs failed, in a paragraph each.
std::string failures(const Comparison& comparison, const TextStyle& style) {
    std::string text;
    for (const ComparedRun& run : comparison.runs) {
        if (!run.record.end || !run.record.end->is_failure()) continue;
        std::string why = run.record.end->text;
        std::ranges::replace(why, '\n', ' ');
        text += "\n" + wrapped(run.mark + " " + run.state + ": " + printable(why), style.width, 2);
    }
    return text;
}

}  // namespace

std::string comparison_table(const Comparison& comparison, const TextStyle& style) {
    const bool are_plans_known = std::any_of(comparison.runs.begin(), comparison.runs.end(),
                                             [](const ComparedRun& run) { return !run.record.settings.empty(); });
    const bool is_equal = are_plans_known && comparison.differences.empty() && comparison.runs.size() > 1;
    const bool with_settings = comparison.differences.size() <= kMostSettingColumns;
    std::string text = run_list(comparison) + "\n";
    if (is_equal) text += "The plans of these runs say the same.\n\n";
    if (!with_settings) text += settings_table(comparison, style) + "\n";
    return text + results_table(comparison, with_settings, style) + failures(comparison, style);
}

std::string comparison_text(const Comparison& comparison, const std::string& curve, const TextStyle& style) {
    std::string text = comparison_table(comparison, style) + "\n" + plot_text(plot_runs(comparison, curve), style);
    for (const std::string& note : hole_notes(comparison, curve)) text += note + "\n";
    if (comparison.runs.size() > kMostLetters) {
        text += "the first " + std::to_string(kMostLetters) + " of " + std::to_string(comparison.runs.size()) +
                " runs are drawn\n";
    }
    return text;
}

}  // namespace vpp
