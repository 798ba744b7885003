#include "schedule/zero_bubble_h.hpp"

#include <algorithm>
#include <string>

#include "base/error.hpp"
#include "schedule/placement.hpp"

namespace vpp {

namespace {

/// One rank's list; the k-th W follows the I of microbatch k + `lag`, those that are then left come at the end.
std::vector<Action> zero_bubble_h_list(int stage, int num_microbatches, int num_warmup, int lag) {
    std::vector<Action> list;
    for (int i = 0; i < num_warmup; ++i) list.push_back({ActionKind::F, stage, i});
    for (int i = 0; i < num_microbatches + lag; ++i) {
        if (i + num_warmup < num_microbatches) list.push_back({ActionKind::F, stage, i + num_warmup});
        if (i < num_microbatches) list.push_back({ActionKind::I, stage, i});
        if (i >= lag) list.push_back({ActionKind::W, stage, i - lag});
    }
    return list;
}

/// `slack` hops of warm-up for each hop to the last rank, and as many W held back for each hop from the first.
Schedule make_zero_bubble(const char* name, const ScheduleSize& size, int slack) {
    const int P = size.num_ranks, M = size.num_microbatches;
    Schedule schedule{name, P, M, place_stages(Placement::Loop, size), {}};
    for (int rank = 0; rank < P; ++rank) {
        schedule.actions.push_back(zero_bubble_h_list(rank, M, std::min(slack * (P - 1 - rank), M), slack * rank));
    }
    return schedule;
}

/// How many ranks have enough microbatches, where these are a pipeline; no key, since their number has several.
std::string ranks_remedy(int num_microbatches) {
    const int most = (num_microbatches + 1) / 2;
    return most < 2 ? "" : ", " + std::to_string(most) + " ranks";
}

}  // namespace

Schedule make_zero_bubble_h1(const ScheduleSize& size) {
    check_one_stage_per_rank(size, "ZERO_BUBBLE_H1", "INTERLEAVED_ZERO_BUBBLE");
    return make_zero_bubble("ZERO_BUBBLE_H1", size, 1);
}

Schedule make_zero_bubble_h2(const ScheduleSize& size) {
    check_one_stage_per_rank(size, "ZERO_BUBBLE_H2", "INTERLEAVED_ZERO_BUBBLE");
    const int fewest = 2 * size.num_ranks - 1;
    if (size.num_microbatches < fewest) {
        throw Error(ErrorKind::Plan,
                    "ZERO_BUBBLE_H2 needs at least 2 num_stages - 1 microbatches (got num_microbatches = " +
                        std::to_string(size.num_microbatches) + " with num_stages = " + std::to_string(size.num_ranks) +
                        ", expected at least " + std::to_string(fewest) +
                        "); try num_microbatches = " + std::to_string(fewest) + ranks_remedy(size.num_microbatches) +
                        " or schedule_type = \"ZERO_BUBBLE_H1\"");
    }
    return make_zero_bubble("ZERO_BUBBLE_H2", size, 2);
}

}  // namespace vpp
