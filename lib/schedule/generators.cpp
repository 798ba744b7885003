#include "schedule/generators.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/suggest.hpp"
#include "schedule/forward_only.hpp"
#include "schedule/gpipe.hpp"
#include "schedule/interleaved_1f1b.hpp"
#include "schedule/one_f_one_b.hpp"
#include "schedule/size.hpp"

namespace vpp {

namespace {

struct Row {
    const char* name;
    Schedule (*make)(const ScheduleSize&);
    bool trains = true;
};

constexpr std::array kRows{
    Row{"GPIPE", make_gpipe},
    Row{"1F1B", make_one_f_one_b},
    Row{"SIMPLE_1F1B", make_one_f_one_b},
    Row{"INTERLEAVED_1F1B", make_interleaved_1f1b},
    Row{"FORWARD_ONLY", make_forward_only, false},
};

}  // namespace

std::vector<std::string> schedule_names() {
    std::vector<std::string> names;
    for (const Row& row : kRows) {
        if (row.trains) names.emplace_back(row.name);
    }
    return names;
}

Schedule make_schedule(const std::string& name, int num_ranks, int stages_per_rank, int num_microbatches) {
    const auto row = std::find_if(kRows.begin(), kRows.end(), [&](const Row& r) { return name == r.name; });
    if (row == kRows.end()) {
        const std::vector<std::string> names = schedule_names();
        std::string known;
        for (const std::string& one : names) known += (known.empty() ? "" : ", ") + one;
        throw Error(ErrorKind::Plan, "there is no schedule '" + printable(name) + "' (expected one of " + known + ")" +
                                         did_you_mean(name, names));
    }
    const ScheduleSize size{num_ranks, stages_per_rank, num_microbatches};
    check_size(size);
    return row->make(size);
}

}  // namespace vpp
