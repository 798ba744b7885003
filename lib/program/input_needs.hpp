#pragma once
// Which model inputs a PP rank takes in a step or in a group of an evaluation, in which order, and how many of them it
// reads ahead of their use.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "program/program.hpp"

namespace vpp {

/// One model input of one microbatch of one step.
struct InputNeed {
    int64_t step = 0;  ///< or group
    int replica = 0;
    int microbatch = 0;
    int input = 0;
    bool operator==(const InputNeed&) const = default;
};

/// What a PP rank takes in a step; `step` is left open. First what targets of all replicas are counted from, where this
/// rank makes losses that are means over them (engine/target_count.hpp), then what the forward passes take, in the
/// order of its actions. Of several replicas of the rank the last one comes first (Program::replicas_per_rank);
/// `first_replica` is the first of them.
std::vector<InputNeed> needs_of_step(const Plan& plan, const Program& program, int pp_rank, int first_replica);

/// What a PP rank takes in a group of an evaluation: what its forward passes take, then what its own replica's targets
/// are counted from.  Requires: the program has an evaluation phase.
std::vector<InputNeed> needs_of_group(const Plan& plan, const Program& program, int pp_rank, int replica);

/// An input of a microbatch.
int64_t bytes_of_input(const Program& program, const Graph& graph, int input);

/// As many needs as fit into `limit_bytes` wherever in the endless row of steps they begin, but no more than a step
/// has, and no fewer than one forward pass takes; none for a limit of 0.
size_t num_inputs_ahead(const Program& program, const Graph& graph, const std::vector<InputNeed>& needs,
                        int64_t limit_bytes);

/// The most that so many neighbours in the row are.
int64_t largest_run_bytes(const Program& program, const Graph& graph, const std::vector<InputNeed>& needs,
                          size_t length);

}  // namespace vpp
