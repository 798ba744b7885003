#include "schedule/measured_times.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace vpp {

namespace {

constexpr double kNanosecond = 1e-9;

/// The sum of its kind; a receive's wait is apart.
double& sum_of(StageTimes& times, ActionKind kind) {
    switch (kind) {
        case ActionKind::F:
            return times.forward;
        case ActionKind::B:
            return times.backward;
        case ActionKind::I:
            return times.input_gradient;
        case ActionKind::W:
            return times.weight_gradient;
        case ActionKind::SendF:
        case ActionKind::RecvF:
            return times.transfer_forward;
        case ActionKind::SendB:
        case ActionKind::RecvB:
            return times.transfer_backward;
        case ActionKind::ReduceGrad:
            return times.reduce;
    }
    return times.reduce;
}

/// How many actions of a kind a stage has.
struct Counts {
    int forward = 0, backward = 0, input_gradient = 0, weight_gradient = 0;
};

std::vector<Counts> count_actions(const Schedule& schedule) {
    std::vector<Counts> counts(schedule.rank_of_stage.size());
    for (const std::vector<Action>& list : schedule.actions) {
        for (const Action& action : list) {
            Counts& stage = counts[static_cast<size_t>(action.stage)];
            if (action.kind == ActionKind::F) ++stage.forward;
            if (action.kind == ActionKind::B) ++stage.backward;
            if (action.kind == ActionKind::I) ++stage.input_gradient;
            if (action.kind == ActionKind::W) ++stage.weight_gradient;
        }
    }
    return counts;
}

Ticks mean_ticks(double seconds, int count) {
    return count > 0 ? std::llround(seconds / count / kNanosecond) : 0;
}

/// Messages of the backward pass belong to what makes and takes them: B, or I where the backward is in halves.
StageCosts costs_of(const StageTimes& times, const Counts& counts) {
    StageCosts costs;
    costs.forward = mean_ticks(times.forward + times.transfer_forward, counts.forward);
    costs.weight_gradient = mean_ticks(times.weight_gradient, counts.weight_gradient);
    const int backward = counts.backward + counts.input_gradient;
    const Ticks messages = mean_ticks(times.transfer_backward, backward);
    costs.input_gradient = mean_ticks(times.input_gradient, counts.input_gradient) + messages;
    costs.backward = mean_ticks(times.backward, counts.backward) + messages;
    if (counts.backward == 0) costs.backward = costs.input_gradient + costs.weight_gradient;
    if (counts.input_gradient == 0) {
        costs.input_gradient = costs.backward / 2;
        costs.weight_gradient = costs.backward - costs.input_gradient;
    }
    return costs;
}

}  // namespace

std::vector<ActionSpan> work_spans(const std::vector<Action>& actions, std::span<const ActionSpan> spans) {
    check(actions.size() == spans.size(), "the time of every action is known");
    std::vector<ActionSpan> work(spans.begin(), spans.end());
    const auto is_by_card = [&](size_t i) { return is_computing(actions[i].kind) && spans[i].device_end != 0; };
    bool has_card = false;
    for (size_t i = 0; i < actions.size(); ++i) has_card |= is_by_card(i);
    if (!has_card) return work;
    int64_t idle_since = spans.front().begin;
    for (size_t i = 0; i < actions.size(); ++i) {
        if (is_by_card(i)) {
            work[i].begin = idle_since;
            work[i].wait = std::max(int64_t{0}, spans[i].device_begin - idle_since);
            work[i].end = idle_since = std::max(idle_since, spans[i].device_end);
        } else if (is_transfer(actions[i].kind)) {
            work[i].begin = work[i].end = idle_since;
            work[i].wait = 0;
        }
    }
    return work;
}

StageTimes& StageTimes::operator+=(const StageTimes& other) {
    forward += other.forward;
    backward += other.backward;
    input_gradient += other.input_gradient;
    weight_gradient += other.weight_gradient;
    transfer_forward += other.transfer_forward;
    transfer_backward += other.transfer_backward;
    reduce += other.reduce;
    wait += other.wait;
    return *this;
}

StageTimes& StageTimes::operator*=(double factor) {
    for (double* part : {&forward, &backward, &input_gradient, &weight_gradient, &transfer_forward, &transfer_backward,
                         &reduce, &wait}) {
        *part *= factor;
    }
    return *this;
}

std::vector<StageTimes> stage_times(const Schedule& schedule, int rank, std::span<const ActionSpan> spans) {
    const std::vector<Action>& actions = schedule.actions.at(static_cast<size_t>(rank));
    const std::vector<ActionSpan> work = work_spans(actions, spans);
    std::vector<StageTimes> times(schedule.rank_of_stage.size());
    for (size_t i = 0; i < actions.size(); ++i) {
        StageTimes& stage = times[static_cast<size_t>(actions[i].stage)];
        sum_of(stage, actions[i].kind) += kNanosecond * static_cast<double>(work[i].busy());
        stage.wait += kNanosecond * static_cast<double>(work[i].wait);
    }
    return times;
}

ScheduleCosts costs_of_times(const Schedule& schedule, const std::vector<StageTimes>& times) {
    check(times.size() == schedule.rank_of_stage.size(), "the times of every stage are known");
    const std::vector<Counts> counts = count_actions(schedule);
    ScheduleCosts costs;
    costs.ticks_per_unit = kNanosecondsPerMillisecond;
    for (size_t stage = 0; stage < times.size(); ++stage) costs.stages.push_back(costs_of(times[stage], counts[stage]));
    return costs;
}

double measured_bubble(const Schedule& schedule, const std::vector<StageTimes>& times, double seconds) {
    if (seconds <= 0) return 0;
    double busy = 0;
    for (const StageTimes& stage : times) busy += stage.busy();
    return std::max(0.0, 1 - busy / (schedule.num_ranks * seconds));
}

}  // namespace vpp
