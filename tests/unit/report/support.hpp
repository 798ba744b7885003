#pragma once
// What the tests of reports share: one event of each kind.
#include "report/event.hpp"

namespace vpp::test {

inline StepEvent sample_step(int64_t step = 10) {
    StepEvent event;
    event.step = step;
    event.total_steps = 300;
    event.loss = 3.14159;
    event.microbatch_losses = {3.25, 3.0};
    event.grad_norm = 1.2345;
    event.clipped = true;
    event.lr = 3e-4;
    event.samples_per_second = 96.4;
    event.tokens_per_second = 12345;
    event.step_ms = 82.3;
    event.reduce_ms = 1.5;
    event.bubble_mean = 0.21;
    event.bubble_worst = 0.354;
    event.worst_rank = 3;
    event.stages = {{0, 4.125, 8.25, 0.5, 3}, {1, 4, 9, 0.25, 2.5}};
    event.bubble_idle = 0.25;
    event.bubble_predicted = 0.2;
    event.memory_bytes = int64_t{412} << 20;
    event.activation_bytes = int64_t{24} << 20;
    event.eta_seconds = 80;
    return event;
}

}  // namespace vpp::test
