#pragma once
// What the actions of a step took in earnest: by action, by stage, and as costs for the simulator, whose step is then
// what these actions would take if nothing but the schedule made ranks wait.
#include <cstdint>
#include <span>
#include <vector>

#include "schedule/costs.hpp"
#include "schedule/schedule.hpp"

namespace vpp {

inline constexpr double kNanosecondsPerMillisecond = 1e6;

/// One action, on a clock of its rank that never goes back; nanoseconds.
struct ActionSpan {
    int64_t begin = 0;
    int64_t end = 0;
    int64_t wait = 0;                          ///< of it, waiting for messages
    int64_t load = 0;                          ///< of it, waiting for data, which an F does first
    int64_t device_begin = 0, device_end = 0;  ///< when the rank's card did it; both 0: not known

    int64_t busy() const { return end - begin - wait; }
};

/// The actions of one stage in one step; seconds.
struct StageTimes {
    double forward = 0;            ///< F
    double backward = 0;           ///< B
    double input_gradient = 0;     ///< I
    double weight_gradient = 0;    ///< W
    double transfer_forward = 0;   ///< SEND_F and RECV_F: writing and reading messages
    double transfer_backward = 0;  ///< SEND_B and RECV_B
    double reduce = 0;             ///< REDUCE_GRAD: starting it
    double wait = 0;               ///< for messages that this stage receives

    double compute() const { return forward + backward + input_gradient + weight_gradient; }
    double transfer() const { return transfer_forward + transfer_backward; }
    double busy() const { return compute() + transfer() + reduce; }
    StageTimes& operator+=(const StageTimes& other);
    StageTimes& operator*=(double factor);
};

/// The same of the rank's card where that has computed, as if it handled the list itself: an action that computes
/// begins when the card has no other work left and first waits until the card begins with it; a transfer takes no time.
/// Requires: spans beside the rank's actions.
std::vector<ActionSpan> work_spans(const std::vector<Action>& actions, std::span<const ActionSpan> spans);

/// By stage, of the work spans; nothing for stages of other ranks.
/// Requires: spans beside the rank's actions.
std::vector<StageTimes> stage_times(const Schedule& schedule, int rank, std::span<const ActionSpan> spans);

/// The mean action of each stage, in nanoseconds (ticks_per_unit: milliseconds). What a message costs its two ranks
/// counts as theirs; on its way it is free. A kind that was not measured gets its share of what was: B is I + W.
/// Requires: times for every stage of a lowered schedule.
ScheduleCosts costs_of_times(const Schedule& schedule, const std::vector<StageTimes>& times);

/// The part of P x `seconds` in which nobody was busy, 0 to 1; `seconds` is what the actions of the slowest rank took.
double measured_bubble(const Schedule& schedule, const std::vector<StageTimes>& times, double seconds);

}  // namespace vpp
