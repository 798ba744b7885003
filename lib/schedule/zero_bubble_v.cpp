#include "schedule/zero_bubble_v.hpp"

#include <algorithm>
#include <utility>

#include "schedule/v_search.hpp"
#include "schedule/v_shape.hpp"

namespace vpp {

namespace {

using Step = std::pair<ActionKind, Leg>;
constexpr Step kFa{ActionKind::F, Leg::Down}, kIa{ActionKind::I, Leg::Down}, kWa{ActionKind::W, Leg::Down};
constexpr Step kFb{ActionKind::F, Leg::Up}, kIb{ActionKind::I, Leg::Up}, kWb{ActionKind::W, Leg::Up};

std::vector<Action> zero_bubble_v_list(const ScheduleSize& size, int rank) {
    const int P = size.num_ranks, planned = std::max(size.num_microbatches, 2 * P - 1);
    VListWriter writer(size, rank);
    const auto done = [&](const Step& step) { return writer.count(step.first, step.second); };
    const auto repeat = [&](int times, std::initializer_list<Step> steps) {
        for (int i = 0; i < times; ++i) {
            for (const Step& step : steps) writer.add(step.first, step.second);
        }
    };
    repeat(2 * (P - rank) - 1, {kFa});
    repeat(rank, {kFb, kFa});
    repeat(P - rank, {kFb, kIb, kWb});
    while (done(kFb) < planned) {
        if (done(kFa) < planned) repeat(1, {kFa});
        repeat(1, {kIa, kWa, kFb, kIb, kWb});
    }
    repeat(rank, {kIa, kIb});
    repeat(P - rank, {kIa, kWa});
    repeat(planned - done(kWb), {kWb});
    repeat(planned - done(kWa), {kWa});
    return writer.take();
}

}  // namespace

Schedule make_zero_bubble_v_fixed(const ScheduleSize& size) {
    check_two_stages_per_rank(size, "ZERO_BUBBLE_V");
    Schedule schedule = make_empty_v(size, "ZERO_BUBBLE_V");
    for (int rank = 0; rank < size.num_ranks; ++rank) schedule.actions.push_back(zero_bubble_v_list(size, rank));
    return schedule;
}

Schedule make_zero_bubble_v(const ScheduleRequest& request) {
    if (!request.memory_limit) return make_zero_bubble_v_fixed(request.size);
    check_two_stages_per_rank(request.size, "ZERO_BUBBLE_V");
    const int most = v_memory_limit(request, "ZERO_BUBBLE_V");
    Schedule schedule = make_empty_v(request.size, "ZERO_BUBBLE_V");
    schedule.actions = search_v(request, {.most = most, .goal = VGoal::Span}).actions;
    return schedule;
}

}  // namespace vpp
