#include "plan/batch_size.hpp"

namespace vpp {

int microbatches_of_step(const Plan& plan) {
    return *plan.pipeline.num_microbatches * plan.train.accumulate;
}

int64_t parts_of_batch(const Plan& plan) {
    return int64_t{microbatches_of_step(plan)} * *plan.mesh.dp;
}

int64_t samples_of_batches(int64_t num_samples, int64_t samples_per_batch, int64_t batches) {
    return batches > 0 && batches <= num_samples / samples_per_batch ? batches * samples_per_batch : num_samples;
}

int64_t samples_of_microbatch(const Plan& plan) {
    return *plan.train.global_batch_size / parts_of_batch(plan);
}

Plan with_one_run(Plan plan) {
    *plan.train.global_batch_size /= plan.train.accumulate;
    plan.train.accumulate = 1;
    return plan;
}

}  // namespace vpp
