// vpp schedule compare.
#include <algorithm>
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>

#include "app/commands/schedule_choice.hpp"
#include "app/commands/schedule_figures.hpp"
#include "app/schedule_options.hpp"
#include "base/json_text.hpp"
#include "base/units.hpp"
#include "schedule/comparison.hpp"

namespace vpp {

namespace {

using nlohmann::ordered_json;

ComparisonRequest comparison_request(const ScheduleArguments& given) {
    const std::optional<Plan> plan = schedule_plan(given);
    const ScheduleSize size = ranks_and_microbatches(given, plan);
    ComparisonRequest request;
    request.num_ranks = size.num_ranks;
    request.num_microbatches = size.num_microbatches;
    request.stages_per_rank = given.per_rank;
    request.costs = given.costs;
    request.memory_limit = activations_limit(given, plan);
    request.interleave_group = interleave_group(given, plan);
    return request;
}

ordered_json to_json(const ScheduleComparison& comparison) {
    ordered_json rows = ordered_json::array(), left_out = ordered_json::array();
    for (const ScheduleMetrics& row : comparison.rows) {
        rows.push_back({{"schedule", row.schedule},
                        {"pp", row.num_ranks},
                        {"virtual_chunks", row.stages_per_rank},
                        {"num_microbatches", row.num_microbatches},
                        {"makespan", row.makespan},
                        {"span", row.span},
                        {"bubble_makespan", row.bubble_makespan},
                        {"bubble_span", row.bubble_span},
                        {"peak_activations", row.peak_activations()},
                        {"messages", row.num_messages}});
    }
    for (const ScheduleComparison::LeftOut& out : comparison.left_out) {
        left_out.push_back({{"schedule", out.name}, {"reason", out.reason}});
    }
    return {{"rows", rows}, {"left_out", left_out}};
}

void print(const ScheduleComparison& comparison, const ComparisonRequest& request) {
    std::cout << counted_text(request.num_ranks, "rank") << ", "
              << counted_text(request.num_microbatches, "microbatch", "microbatches");
    if (request.memory_limit) std::cout << ", at most " << fixed_text(*request.memory_limit, 2) << " activations";
    double longest = 0;
    for (const ScheduleMetrics& row : comparison.rows) longest = std::max(longest, row.makespan);
    const int width = time_width(longest);
    std::cout << "\nschedule                   v" << std::setw(width) << "makespan"
              << "  bubble %" << std::setw(width) << "span"
              << "  bubble %      peak  messages\n";
    for (const ScheduleMetrics& row : comparison.rows) {
        std::cout << std::left << std::setw(24) << row.schedule << std::right << std::setw(4) << row.stages_per_rank
                  << std::setw(width) << fixed_text(row.makespan, 3) << std::setw(10)
                  << fixed_text(100 * row.bubble_makespan, 2) << std::setw(width) << fixed_text(row.span, 3)
                  << std::setw(10) << fixed_text(100 * row.bubble_span, 2) << std::setw(10)
                  << fixed_text(row.peak_activations(), 2) << std::setw(10) << row.num_messages << "\n";
    }
    std::cout << "v stages a rank; peak in microbatch activations of a full rank; messages between ranks a step;\n"
                 "a step ends with the makespan, spans are to compare with papers\n";
    for (const ScheduleComparison::LeftOut& out : comparison.left_out) {
        std::cout << "left out: " << out.name << ": " << out.reason << "\n";
    }
    std::cout.flush();
}

}  // namespace

int run_schedule_compare(const ScheduleArguments& given) {
    const ComparisonRequest request = comparison_request(given);
    const ScheduleComparison comparison = compare_schedules(request);
    if (given.json) {
        std::cout << json_text(to_json(comparison)) << std::endl;
    } else {
        print(comparison, request);
    }
    return 0;
}

}  // namespace vpp
