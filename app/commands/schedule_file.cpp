// vpp schedule check and convert.
#include <iostream>
#include <nlohmann/json.hpp>

#include "app/commands/schedule_choice.hpp"
#include "app/schedule_options.hpp"
#include "base/file.hpp"
#include "base/json_text.hpp"
#include "base/units.hpp"
#include "schedule/custom.hpp"

namespace vpp {

int run_schedule_check(const ScheduleArguments& given) {
    const ScheduleFile file = open_schedule_file(given.file);
    const Schedule& schedule = file.schedule;
    const ScheduleStages stages = stages_of_file(file, schedule_plan(given));
    const ScheduleFacts facts = prove_over(file, stages).facts;
    if (given.json) {
        const nlohmann::ordered_json shown{{"file", file.source},
                                           {"pp", schedule.num_ranks},
                                           {"num_stages", schedule.num_stages()},
                                           {"num_microbatches", schedule.num_microbatches},
                                           {"rank_of_stage", schedule.rank_of_stage},
                                           {"lowered", file.is_lowered},
                                           {"forward_only", schedule.forward_only},
                                           {"computing_actions", facts.num_computing},
                                           {"messages", facts.num_messages},
                                           {"peak_in_flight", facts.peak_in_flight}};
        std::cout << json_text(shown) << std::endl;
        return 0;
    }
    std::cout << file.source << ": a sound " << (schedule.forward_only ? "forward-only " : "") << "schedule "
              << (file.is_lowered ? "with transfers" : "of computing actions") << ": "
              << counted_text(schedule.num_ranks, "rank") << ", " << counted_text(schedule.num_stages(), "stage")
              << ", " << counted_text(schedule.num_microbatches, "microbatch", "microbatches") << '\n'
              << facts.num_computing << " computing actions and " << facts.num_messages << " messages, for "
              << stages.what << "; stage activations held at once:";
    for (int peak : facts.peak_in_flight) std::cout << ' ' << peak;
    std::cout << std::endl;
    return 0;
}

int run_schedule_convert(const ScheduleArguments& given) {
    const ScheduleFile file = open_schedule_file(given.file, /*any_dialect=*/true);
    std::string text = to_csv(file);
    if (given.lowered) {
        const ScheduleStages stages = stages_of_file(file, schedule_plan(given));
        text = file_text(prove_over(file, stages).lowered, stages);
    }
    if (given.compute) text = to_csv(computing_part(file.schedule));
    if (given.out.empty()) {
        std::cout << text << std::flush;
    } else {
        write_file_durably(given.out, text);
    }
    return 0;
}

}  // namespace vpp
