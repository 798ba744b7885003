#include "schedule/zero_bubble_v.hpp"

#include <algorithm>
#include <utility>

#include "schedule/v_search.hpp"
#include "schedule/v_shape.hpp"

namespace vpp {

namespace {

using Step = std::pair<ActionKind, Leg>;
constexpr Step kFDown{ActionKind::F, Leg::Down}, kIDown{ActionKind::I, Leg::Down}, kWDown{ActionKind::W, Leg::Down};
constexpr Step kFUp{ActionKind::F, Leg::Up}, kIUp{ActionKind::I, Leg::Up}, kWUp{ActionKind::W, Leg::Up};

std::vector<Action> zero_bubble_v_list(const ScheduleSize& size, int rank) {
    const int P = size.num_ranks, planned = std::max(size.num_microbatches, 2 * P - 1);
    VListWriter writer(size, rank);
    const auto done = [&](const Step& step) { return writer.count(step.first, step.second); };
    const auto repeat = [&](int times, std::initializer_list<Step> steps) {
        for (int i = 0; i < times; ++i) {
            for (const Step& step : steps) writer.add(step.first, step.second);
        }
    };
    repeat(2 * (P - rank) - 1, {kFDown});
    repeat(rank, {kFUp, kFDown});
    repeat(P - rank, {kFUp, kIUp, kWUp});
    while (done(kFUp) < planned) {
        if (done(kFDown) < planned) repeat(1, {kFDown});
        repeat(1, {kIDown, kWDown, kFUp, kIUp, kWUp});
    }
    repeat(rank, {kIDown, kIUp});
    repeat(P - rank, {kIDown, kWDown});
    repeat(planned - done(kWUp), {kWUp});
    repeat(planned - done(kWDown), {kWDown});
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
