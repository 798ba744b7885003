#pragma once
// Which model inputs a PP rank takes in a step, in which order, and how many of them it reads ahead of their use.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "program/program.hpp"

namespace vpp {

/// One model input of one microbatch of one step.
struct InputNeed {
    int64_t step = 0;
    int replica = 0;
    int microbatch = 0;
    int input = 0;
    bool operator==(const InputNeed&) const = default;
};

/// What the forward passes of a PP rank take in a step, in the order of its actions; `step` is left open. Of several
/// replicas of the rank the last one comes first (Program::replicas_per_rank); `first_replica` is the first of them.
std::vector<InputNeed> needs_of_step(const Program& program, int pp_rank, int first_replica);

/// An input of a microbatch.
int64_t bytes_of_input(const Program& program, int input);

/// As many needs as fit into `limit_bytes` wherever in the endless row of steps they begin, but no more than a step
/// has, and no fewer than one forward pass takes; none for a limit of 0.
size_t num_inputs_ahead(const Program& program, const std::vector<InputNeed>& needs, int64_t limit_bytes);

/// The most that so many neighbours in the row are.
int64_t largest_run_bytes(const Program& program, const std::vector<InputNeed>& needs, size_t length);

}  // namespace vpp
