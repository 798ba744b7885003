#pragma once
// What the schedule commands print and write of a simulated schedule.
#include <nlohmann/json_fwd.hpp>

#include "app/schedule_options.hpp"
#include "schedule/metrics.hpp"

namespace vpp {

nlohmann::ordered_json metrics_json(const ScheduleMetrics& metrics);
/// Columns of times up to `longest`, with what parts them.
int time_width(double longest);
/// To stdout, as a table of the ranks.
void print_metrics(const ScheduleMetrics& metrics);
/// --svg and --trace.
void write_drawings(const ScheduleArguments& given, const Schedule& lowered, const ScheduleCosts& costs);

}  // namespace vpp
