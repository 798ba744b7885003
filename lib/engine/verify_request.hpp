#pragma once
// What a user asks of a verification; plain values. Nothing set: the plan's own layout.
#include <cstdint>
#include <string>
#include <vector>

namespace vpp {

struct VerifyRequest {
    int64_t steps = 10;
    bool all_schedules = false;
    bool all_splits = false;
    int random_cuts = 0;                            ///< how many sets of random legal cuts for every number of stages
    uint64_t seed = 1;                              ///< of the random cuts
    std::vector<int> microbatches, stages, chunks;  ///< empty: the plan's; stages are ranks of the pipeline
    std::vector<int> replicas;                      ///< empty: the plan's mesh.dp
    std::vector<bool> zero1;                        ///< empty: the plan's mesh.zero1
    std::vector<std::string> recompute;             ///< as recompute_from_text takes them; empty: the plan's
    bool pairwise = false;                          ///< of all combinations a few that have every pair of values

    bool is_matrix() const {
        return all_schedules || all_splits || random_cuts > 0 || !microbatches.empty() || !stages.empty() ||
               !chunks.empty() || !recompute.empty() || !replicas.empty() || !zero1.empty();
    }
};

}  // namespace vpp
