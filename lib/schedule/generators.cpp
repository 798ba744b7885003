#include "schedule/generators.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/suggest.hpp"
#include "schedule/forward_only.hpp"
#include "schedule/gpipe.hpp"
#include "schedule/interleaved_1f1b.hpp"
#include "schedule/one_f_one_b.hpp"
#include "schedule/zero_bubble_greedy.hpp"

namespace vpp {

namespace {

/// For generators that look at the size alone.
template <Schedule (*make)(const ScheduleSize&)>
Schedule by_size(const ScheduleRequest& request) {
    return make(request.size);
}

}  // namespace

const std::vector<ScheduleKind>& schedule_kinds() {
    static const std::vector<ScheduleKind> kKinds{
        {.name = "GPIPE", .summary = "all forwards, then all backwards", .make = by_size<make_gpipe>},
        {.name = "1F1B", .summary = "one forward, one backward after a warm-up", .make = by_size<make_one_f_one_b>},
        {.name = "SIMPLE_1F1B", .summary = "1F1B", .make = by_size<make_one_f_one_b>, .same_as = "1F1B"},
        {.name = "INTERLEAVED_1F1B",
         .summary = "1F1B over several stages per rank, loop placement",
         .make = by_size<make_interleaved_1f1b>,
         .fewest_per_rank = 2,
         .most_per_rank = kAnyPerRank},
        {.name = "ZERO_BUBBLE_GREEDY",
         .summary = "I and W apart, W where a rank would wait; memory_limit",
         .make = make_zero_bubble_greedy,
         .splits_backward = true},
        {.name = "FORWARD_ONLY",
         .summary = "evaluation: forwards only",
         .make = by_size<make_forward_only>,
         .most_per_rank = kAnyPerRank,
         .trains = false},
    };
    return kKinds;
}

std::vector<std::string> schedule_names() {
    std::vector<std::string> names;
    for (const ScheduleKind& kind : schedule_kinds()) {
        if (kind.trains && !kind.splits_backward) names.emplace_back(kind.name);  // the engine has no I and W yet
    }
    return names;
}

Schedule make_schedule(const std::string& name, const ScheduleRequest& request) {
    const std::vector<ScheduleKind>& kinds = schedule_kinds();
    const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const ScheduleKind& k) { return name == k.name; });
    if (kind == kinds.end()) {
        std::vector<std::string> names;
        for (const ScheduleKind& one : kinds) {
            if (one.trains) names.emplace_back(one.name);
        }
        std::string known;
        for (const std::string& one : names) known += (known.empty() ? "" : ", ") + one;
        throw Error(ErrorKind::Plan, "there is no schedule '" + printable(name) + "' (expected one of " + known + ")" +
                                         did_you_mean(name, names));
    }
    check_size(request.size);
    return kind->make(request);
}

Schedule make_schedule(const std::string& name, int num_ranks, int stages_per_rank, int num_microbatches) {
    return make_schedule(name, {.size = {num_ranks, stages_per_rank, num_microbatches}});
}

}  // namespace vpp
