#pragma once
// How the batch of a step is divided. Every function requires a plan that is resolved for its world.
#include <cstdint>

#include "plan/plan.hpp"

namespace vpp {

/// Microbatches of a step on one replica: those of all its pipeline runs (train.accumulate).
int microbatches_of_step(const Plan& plan);

/// Microbatches of a step on all replicas: into so many parts the global batch is divided.
int64_t parts_of_batch(const Plan& plan);

/// Samples of a microbatch.
int64_t samples_of_microbatch(const Plan& plan);

/// The plan with steps of one pipeline run, of the same microbatches.
Plan with_one_run(Plan plan);

}  // namespace vpp
