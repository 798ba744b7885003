#pragma once
// How the batch of a step is divided. A plan has to be resolved for its world.
#include <cstdint>

#include "plan/plan.hpp"

namespace vpp {

/// Microbatches of a step on one replica: those of all its pipeline runs (train.accumulate).
int microbatches_of_step(const Plan& plan);

/// Microbatches of a step on all replicas: into so many parts the global batch is divided.
int64_t parts_of_batch(const Plan& plan);

/// Samples of so many whole batches, or all there are: with 0 batches, or when there are not so many.
int64_t samples_of_batches(int64_t num_samples, int64_t samples_per_batch, int64_t batches);

/// Samples of a microbatch.
int64_t samples_of_microbatch(const Plan& plan);

/// The plan with steps of one pipeline run, of the same microbatches.
Plan with_one_run(Plan plan);

}  // namespace vpp
