#include "app/commands/inspect_search.hpp"

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

void print_costs_and_search(std::ostream& out, const Plan& plan, const Program& program) {
    const std::string indent = "\n          ";
    const ScheduleMetrics metrics = measure_schedule(program.training.schedule, program.costs);
    out << "costs     " << program.cost_source << indent << "bubble " << fixed_text(100 * metrics.bubble_makespan, 1)
        << " %, a step takes " << fixed_text(metrics.makespan, 3) << ' ' << program.cost_unit << "\n";
    if (!program.search) return;
    std::string found = search_text(*program.search, program.costs);
    found.replace(found.find('\n'), 1, indent);
    out << "search    " << found << indent << "a rank holds at most " << fixed_text(metrics.peak_activations(), 2)
        << " microbatches' activations, " << program.search->stages_per_rank << " stage(s) a rank" << indent
        << "to keep it: vpp schedule search --config " << plan.file
        << " --out auto.csv, then schedule_type = \"CUSTOM\"," << indent
        << "schedule_file = \"auto.csv\", virtual_chunks = " << program.search->stages_per_rank << "\n";
}

}  // namespace vpp
