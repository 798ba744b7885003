#include "app/commands/schedule_figures.hpp"

#include <algorithm>
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "base/units.hpp"
#include "schedule/svg.hpp"
#include "schedule/trace.hpp"

namespace vpp {

using nlohmann::ordered_json;

namespace {

constexpr size_t kUsualTimeWidth = 12;

}  // namespace

ordered_json metrics_json(const ScheduleMetrics& metrics) {
    ordered_json peaks = ordered_json::array(), by_rank = ordered_json::array();
    for (size_t rank = 0; rank < metrics.ranks.size(); ++rank) {
        const RankMetrics& one = metrics.ranks[rank];
        peaks.push_back(one.peak_activations);
        by_rank.push_back({{"rank", rank},
                           {"stages", one.num_stages},
                           {"busy", one.busy},
                           {"idle", one.idle},
                           {"first_start", one.first_start},
                           {"last_end", one.last_end},
                           {"peak_activations", one.peak_activations},
                           {"sends", one.num_sends}});
    }
    return {{"schedule", metrics.schedule},
            {"pp", metrics.num_ranks},
            {"virtual_chunks", metrics.stages_per_rank},
            {"num_microbatches", metrics.num_microbatches},
            {"makespan", metrics.makespan},
            {"span", metrics.span},
            {"bubble_makespan", metrics.bubble_makespan},
            {"bubble_span", metrics.bubble_span},
            {"peak_activations", peaks},
            {"by_rank", by_rank}};
}

int time_width(double longest) {
    return static_cast<int>(std::max(kUsualTimeWidth, fixed_text(longest, 3).size() + 2));
}

void print_metrics(const ScheduleMetrics& metrics) {
    std::cout << metrics.schedule << ": " << counted_text(metrics.num_ranks, "rank") << ", "
              << counted_text(metrics.stages_per_rank, "stage") << " a rank, "
              << counted_text(metrics.num_microbatches, "microbatch", "microbatches") << '\n'
              << "makespan " << fixed_text(metrics.makespan, 3) << ", bubble "
              << fixed_text(100 * metrics.bubble_makespan, 2) << " %\n"
              << "span     " << fixed_text(metrics.span, 3) << ", bubble " << fixed_text(100 * metrics.bubble_span, 2)
              << " %  (to compare with papers; a step ends with the makespan)\n"
              << metrics.num_messages << " messages between ranks\n\n";
    const int width = time_width(metrics.makespan);
    std::cout << " rank  stages" << std::setw(width) << "busy" << std::setw(width) << "idle" << std::setw(width)
              << "start" << std::setw(width) << "end"
              << "   peak activations\n";
    for (size_t rank = 0; rank < metrics.ranks.size(); ++rank) {
        const RankMetrics& one = metrics.ranks[rank];
        std::cout << std::setw(5) << rank << std::setw(8) << one.num_stages << std::setw(width)
                  << fixed_text(one.busy, 3) << std::setw(width) << fixed_text(one.idle, 3) << std::setw(width)
                  << fixed_text(one.first_start, 3) << std::setw(width) << fixed_text(one.last_end, 3) << std::setw(19)
                  << fixed_text(one.peak_activations, 3) << "\n";
    }
    std::cout << "activations in microbatches of a full rank\n";
}

void write_drawings(const ScheduleArguments& given, const Schedule& lowered, const ScheduleCosts& costs) {
    if (!given.svg.empty()) write_file_durably(given.svg, draw_svg(lowered, costs));
    if (!given.trace.empty()) write_file_durably(given.trace, write_trace(lowered, costs));
}

}  // namespace vpp
