#include "report/cost_text.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include "base/units.hpp"

namespace vpp {

namespace {

constexpr size_t kMostCostRows = 12;

void add_up(CostRow& sum, const CostRow& more) {
    sum.forward_ms += more.forward_ms;
    sum.backward_ms += more.backward_ms;
    sum.input_gradient_ms += more.input_gradient_ms;
    sum.weight_gradient_ms += more.weight_gradient_ms;
    sum.kept_bytes += more.kept_bytes;
}

/// By submodule, the longest first.
std::vector<CostRow> by_module(const std::vector<CostRow>& parts) {
    std::map<std::string, CostRow> sums;
    for (const CostRow& part : parts) {
        CostRow& row = sums[part.module];
        row.module = part.module.empty() ? "(itself)" : part.module;
        add_up(row, part);
    }
    std::vector<CostRow> rows;
    for (const auto& [name, row] : sums) rows.push_back(row);
    std::stable_sort(rows.begin(), rows.end(),
                     [](const CostRow& a, const CostRow& b) { return a.both_ways_ms() > b.both_ways_ms(); });
    return rows;
}

}  // namespace

std::string balance_text(const Balance& balance, const std::string& unit) {
    const auto time = [&](double value) { return fixed_text(value, 3) + ' ' + unit; };
    return "longest stage " + time(balance.bottleneck) + ", lower bound " + time(balance.lower_bound) + ", " +
           (balance.next_best ? "the next best cut has " + time(*balance.next_best) : "there is no other cut");
}

std::string cost_table(const std::vector<CostRow>& parts, const TextStyle& style) {
    TextTable table({{"submodule", true, 12}, {"F"}, {"B"}, {"I"}, {"W"}, {"F + B %"}, {"kept"}}, 1);
    CostRow total{"all"};
    for (const CostRow& part : parts) add_up(total, part);
    const auto add = [&](const CostRow& row) {
        const double share = total.both_ways_ms() > 0 ? 100 * row.both_ways_ms() / total.both_ways_ms() : 0;
        table.add({{row.module},
                   {fixed_text(row.forward_ms, 3)},
                   {fixed_text(row.backward_ms, 3)},
                   {fixed_text(row.input_gradient_ms, 3)},
                   {fixed_text(row.weight_gradient_ms, 3)},
                   {fixed_text(share, 1)},
                   {bytes_text(row.kept_bytes)}});
    };
    const std::vector<CostRow> rows = by_module(parts);
    const size_t shown = rows.size() <= kMostCostRows ? rows.size() : kMostCostRows - 1;
    for (size_t i = 0; i < shown; ++i) add(rows[i]);
    CostRow others{std::to_string(rows.size() - shown) + " others"};
    for (size_t i = shown; i < rows.size(); ++i) add_up(others, rows[i]);
    if (shown < rows.size()) add(others);
    add(total);
    return table.text(style);
}

}  // namespace vpp
