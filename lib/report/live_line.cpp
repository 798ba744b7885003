#include "report/live_line.hpp"

#include <algorithm>
#include <vector>

#include "base/units.hpp"
#include "report/columns.hpp"
#include "report/step_text.hpp"

namespace vpp {

namespace {

constexpr size_t kLongestBar = 40, kShortestBar = 12;

/// Stands in the line until its length is known; no column has such a byte.
constexpr char kBarMark = '\x01';

double share_done(const StepEvent& event) {
    if (event.total_steps <= 0) return 0;
    return std::clamp(static_cast<double>(event.step) / static_cast<double>(event.total_steps), 0.0, 1.0);
}

std::string bar(double share, size_t length, bool coloured) {
    const size_t inside = coloured ? length : length - 2;
    const auto full = static_cast<size_t>(share * static_cast<double>(inside));
    if (coloured) {
        return "\x1b[42m" + std::string(full, ' ') + "\x1b[100m" + std::string(inside - full, ' ') + "\x1b[0m";
    }
    std::string text = std::string(full, '=') + std::string(inside - full, ' ');
    if (full < inside) text[full] = '>';
    return '[' + text + ']';
}

}  // namespace

std::string live_line(const StepEvent& event, size_t width, bool coloured) {
    const double share = share_done(event);
    const std::string total = std::to_string(event.total_steps);
    std::vector<Column> columns{
        {right_aligned(whole_percent_text(share), 5), 5},
        {std::string(kShortestBar, kBarMark), 4},
        {right_aligned(std::to_string(event.step), total.size()) + '/' + total, 9},
        {"loss " + right_aligned(loss_text(event.loss), 7), 8},
        {rate_text(event), 3},
        {flops_text(event), 2},
        {event.bubble_mean ? "bubble " + whole_percent_text(*event.bubble_mean) : "", 1},
        {"ETA " + duration_text(event.eta_seconds), 7},
    };
    std::erase_if(columns, [](const Column& column) { return column.text.empty(); });
    std::string line = fitted_line(columns, width);
    const size_t mark = line.find(kBarMark);
    if (mark == std::string::npos) return line;
    const size_t length = std::min(kLongestBar, kShortestBar + width - line.size());
    return line.replace(mark, kShortestBar, bar(share, length, coloured));
}

}  // namespace vpp
