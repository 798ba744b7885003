#include "schedule/generators.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/suggest.hpp"
#include "schedule/dualpipe_v.hpp"
#include "schedule/eager_1f1b.hpp"
#include "schedule/forward_only.hpp"
#include "schedule/gpipe.hpp"
#include "schedule/interleaved_1f1b.hpp"
#include "schedule/interleaved_zero_bubble.hpp"
#include "schedule/looped_bfs.hpp"
#include "schedule/one_f_one_b.hpp"
#include "schedule/v_adaptive.hpp"
#include "schedule/v_half.hpp"
#include "schedule/zero_bubble_greedy.hpp"
#include "schedule/zero_bubble_h.hpp"
#include "schedule/zero_bubble_v.hpp"

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
        {.name = "EAGER_1F1B", .summary = "1F1B with twice the warm-up", .make = by_size<make_eager_1f1b>},
        {.name = "INTERLEAVED_1F1B",
         .summary = "1F1B over several stages per rank, loop placement",
         .make = make_interleaved_1f1b,
         .fewest_per_rank = 2,
         .most_per_rank = kAnyPerRank},
        {.name = "LOOPED_BFS",
         .summary = "stage after stage, each for all microbatches, loop placement",
         .make = by_size<make_looped_bfs>,
         .most_per_rank = kAnyPerRank},
        {.name = "ZERO_BUBBLE_H1",
         .summary = "1F1B with weight gradients in the bubbles, at its memory",
         .make = by_size<make_zero_bubble_h1>,
         .splits_backward = true},
        {.name = "ZERO_BUBBLE_H2",
         .summary = "no bubble without a barrier, at twice the memory",
         .make = by_size<make_zero_bubble_h2>,
         .splits_backward = true},
        {.name = "INTERLEAVED_ZERO_BUBBLE",
         .summary = "ZERO_BUBBLE_H1 over several stages per rank, loop placement",
         .make = make_interleaved_zero_bubble,
         .most_per_rank = kAnyPerRank,
         .splits_backward = true},
        {.name = "ZERO_BUBBLE_V",
         .summary = "ZB-V: v placement without a bubble inside the span, at the memory of 1F1B",
         .make = make_zero_bubble_v,
         .fewest_per_rank = 2,
         .most_per_rank = 2,
         .splits_backward = true,
         .uses_costs = true},
        {.name = "ZERO_BUBBLE",
         .summary = "ZERO_BUBBLE_V",
         .make = make_zero_bubble_v,
         .fewest_per_rank = 2,
         .most_per_rank = 2,
         .splits_backward = true,
         .uses_costs = true,
         .same_as = "ZERO_BUBBLE_V"},
        {.name = "V_HALF",
         .summary = "v placement at about half the memory of 1F1B",
         .make = make_v_half,
         .fewest_per_rank = 2,
         .most_per_rank = 2,
         .splits_backward = true,
         .uses_costs = true},
        {.name = "V_MIN",
         .summary = "v placement at about a third of the memory of 1F1B",
         .make = make_v_min,
         .fewest_per_rank = 2,
         .most_per_rank = 2,
         .splits_backward = true,
         .uses_costs = true},
        {.name = "V_ADAPTIVE",
         .summary = "v placement at any memory limit, the shortest of many building blocks",
         .make = make_v_adaptive,
         .fewest_per_rank = 2,
         .most_per_rank = 2,
         .splits_backward = true,
         .uses_costs = true},
        {.name = "DUALPIPE_V",
         .summary = "v placement, pairs of a forward and a backward that overlap",
         .make = by_size<make_dualpipe_v>,
         .fewest_per_rank = 2,
         .most_per_rank = 2,
         .splits_backward = true},
        {.name = "ZERO_BUBBLE_GREEDY",
         .summary = "I and W apart, W where a rank would wait; memory_limit",
         .make = make_zero_bubble_greedy,
         .splits_backward = true,
         .uses_costs = true},
        {.name = "FORWARD_ONLY",
         .summary = "evaluation: forwards only",
         .make = by_size<make_forward_only>,
         .most_per_rank = kAnyPerRank,
         .trains = false},
    };
    return kKinds;
}

const ScheduleKind* find_schedule_kind(const std::string& name) {
    const std::vector<ScheduleKind>& kinds = schedule_kinds();
    const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const ScheduleKind& k) { return name == k.name; });
    return kind == kinds.end() ? nullptr : &*kind;
}

std::vector<std::string> schedule_names() {
    std::vector<std::string> names;
    for (const ScheduleKind& kind : schedule_kinds()) {
        if (kind.trains) names.emplace_back(kind.name);
    }
    return names;
}

Schedule make_schedule(const std::string& name, const ScheduleRequest& request) {
    const ScheduleKind* kind = find_schedule_kind(name);
    if (!kind) {
        std::vector<std::string> names;
        for (const ScheduleKind& one : schedule_kinds()) {
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
