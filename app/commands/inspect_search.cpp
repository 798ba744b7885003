#include "app/commands/inspect_search.hpp"

#include "base/error.hpp"
#include "base/shell.hpp"
#include "base/units.hpp"
#include "schedule/metrics.hpp"

namespace vpp {

std::string search_text(const SearchRecord& search, const ScheduleCosts& costs) {
    const auto units = [&](Ticks ticks) { return fixed_text(costs.units(ticks), 3); };
    std::string text =
        "found from " + search.origin + " in " + std::to_string(search.moves) + " moves: " + units(search.cost());
    if (!search.best_generator.empty()) {
        text += "; the best generated one is " + search.best_generator + " with " + units(search.best_generated);
    }
    return text + "\nlower bound " + units(search.lower_bound) + ", gap " + fixed_text(100 * search.gap(), 2) + " %";
}

std::vector<std::string> search_lines(const PlanArguments& plan, const Program& program) {
    if (!program.search) return {};
    std::vector<std::string> line{"vpp", "schedule", "search", "--config", plan.config};
    for (const std::string& setting : plan.overrides) line.insert(line.end(), {"--set", setting});
    line.insert(line.end(), {"--out", "auto.csv"});
    const std::string found = search_text(*program.search, program.costs);
    const size_t end = found.find('\n');
    const std::string stages = std::to_string(program.search->stages_per_rank);
    const ScheduleMetrics metrics = measure_schedule(program.training.schedule, program.costs);
    return {found.substr(0, end), found.substr(end + 1),
            "a rank holds at most " + fixed_text(metrics.peak_activations(), 2) + " microbatches' activations, " +
                counted_text(program.search->stages_per_rank, "stage") + " a rank",
            "to keep it: " + printable(shell_line(line)) + ", then schedule_type = \"CUSTOM\",",
            "schedule_file = \"auto.csv\", virtual_chunks = " + stages};
}

}  // namespace vpp
