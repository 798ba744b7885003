// vpp schedule list, show and simulate.
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>

#include "app/commands/schedule_choice.hpp"
#include "app/commands/schedule_figures.hpp"
#include "app/schedule_options.hpp"
#include "app/terminal.hpp"
#include "base/json_text.hpp"
#include "schedule/generators.hpp"
#include "schedule/metrics.hpp"
#include "schedule/timeline.hpp"

namespace vpp {

namespace {

using nlohmann::ordered_json;

std::string per_rank_text(const ScheduleKind& kind) {
    const std::string fewest = std::to_string(kind.fewest_per_rank);
    if (kind.most_per_rank == kAnyPerRank) return fewest + " or more";
    if (kind.most_per_rank == kind.fewest_per_rank) return fewest;
    return fewest + " to " + std::to_string(kind.most_per_rank);
}

ordered_json lists_json(const Schedule& schedule) {
    ordered_json lists = ordered_json::array();
    for (const std::vector<Action>& list : schedule.actions) {
        ordered_json texts = ordered_json::array();
        for (const Action& action : list) texts.push_back(to_text(action));
        lists.push_back(std::move(texts));
    }
    return lists;
}

std::string csv_text(const ScheduleArguments& given, const ChosenSchedule& chosen) {
    if (chosen.file && chosen.file->is_lowered == given.lowered) return to_csv(*chosen.file);  // as it was read
    return given.lowered ? file_text(chosen.lowered, chosen.stages) : to_csv(chosen.compute);
}

}  // namespace

int run_schedule_list(const ScheduleArguments& given) {
    if (!given.json) std::cout << std::left << "name                      stages a rank  what\n";
    ordered_json rows = ordered_json::array();
    for (const ScheduleKind& kind : schedule_kinds()) {
        if (given.json) {
            ordered_json row{{"name", kind.name},
                             {"summary", kind.summary},
                             {"fewest_per_rank", kind.fewest_per_rank},
                             {"splits_backward", kind.splits_backward},
                             {"trains", kind.trains}};
            row["most_per_rank"] =
                kind.most_per_rank == kAnyPerRank ? ordered_json(nullptr) : ordered_json(kind.most_per_rank);
            if (kind.is_other_spelling()) row["same_as"] = kind.same_as;
            rows.push_back(row);
        } else {
            std::cout << std::setw(26) << kind.name << std::setw(15) << per_rank_text(kind) << kind.summary << "\n";
        }
    }
    if (given.json) std::cout << json_text(rows, 2) << "\n";
    std::cout.flush();
    return 0;
}

int run_schedule_show(const ScheduleArguments& given) {
    const ChosenSchedule chosen = choose_schedule(given);
    write_drawings(given, chosen.lowered, chosen.costs);
    if (given.csv) {
        std::cout << csv_text(given, chosen);
    } else if (given.json) {
        const Schedule& schedule = given.lowered ? chosen.lowered : chosen.compute;
        const ordered_json shown{{"schedule", schedule.name},
                                 {"pp", schedule.num_ranks},
                                 {"num_microbatches", schedule.num_microbatches},
                                 {"rank_of_stage", schedule.rank_of_stage},
                                 {"actions", lists_json(schedule)}};
        std::cout << json_text(shown) << "\n";
    } else {
        const Terminal terminal = output_terminal();
        std::cout << draw_timeline(chosen.lowered, chosen.costs, given.width ? given.width : terminal.width,
                                   terminal.colour);
    }
    std::cout.flush();
    return 0;
}

int run_schedule_simulate(const ScheduleArguments& given) {
    const ChosenSchedule chosen = choose_schedule(given);
    write_drawings(given, chosen.lowered, chosen.costs);
    const ScheduleMetrics metrics = measure_schedule(chosen.lowered, chosen.costs);
    if (given.json) {
        std::cout << json_text(metrics_json(metrics)) << std::endl;
    } else {
        print_metrics(metrics);
        std::cout.flush();
    }
    return 0;
}

}  // namespace vpp
