#include "report/inspection_words.hpp"

#include <algorithm>
#include <utility>

#include "base/units.hpp"

namespace vpp {

std::string numbers_text(const std::vector<int>& numbers) {
    if (numbers.empty()) return "-";
    std::string text;
    for (size_t begin = 0; begin < numbers.size();) {
        size_t end = begin + 1;
        while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
        text += (text.empty() ? "" : ",") + std::to_string(numbers[begin]);
        if (end - begin > 1) text += "-" + std::to_string(numbers[end - 1]);
        begin = end;
    }
    return text;
}

std::string percent_text(double share) {
    return fixed_text(100 * share, 1) + " %";
}

std::string critical_path_text(const CriticalShares& path) {
    constexpr size_t kMostStages = 3;
    std::vector<std::pair<double, size_t>> stages;
    for (size_t stage = 0; stage < path.stages.size(); ++stage) {
        if (path.stages[stage] > 0) stages.emplace_back(-path.stages[stage], stage);
    }
    std::sort(stages.begin(), stages.end());
    std::string text = "critical path: ";
    double more = 0;
    for (size_t i = 0; i < stages.size(); ++i) {
        const auto [share, stage] = stages[i];
        if (i < kMostStages) text += "stage " + std::to_string(stage) + ' ' + percent_text(-share) + ", ";
        if (i >= kMostStages) more -= share;
    }
    if (stages.size() > kMostStages) {
        text += counted_text(static_cast<int64_t>(stages.size() - kMostStages), "stage") + " more " +
                percent_text(more) + ", ";
    }
    return text + "messages " + percent_text(path.messages);
}

std::string row_name(const InspectedModule& module) {
    const std::string path = module.path.empty() ? "model" : module.path;
    if (module.name == "(itself)") return path + " (itself)";
    if (module.count == 1) return path;
    const size_t dot = path.rfind('.');
    return (dot == std::string::npos ? "" : path.substr(0, dot + 1)) + module.name;
}

}  // namespace vpp
