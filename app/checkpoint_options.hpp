#pragma once
// The commands `vpp checkpoint ...`: their arguments, and the functions that run them.
#include <cstdint>

#include "app/plan_arguments.hpp"

namespace vpp {

struct CheckpointArguments {
    PlanArguments plan;       ///< its config: a plan, a run folder or a checkpoint's folder
    bool verify = false;      ///< list: read every byte
    bool json = false;        ///< list, show
    bool tensors = false;     ///< show: each tensor
    bool print_plan = false;  ///< show: the plan's text
    int keep = 0;             ///< prune
    int64_t keep_every = 0;   ///< prune; 0: of no step
    int keep_best = 0;        ///< prune; by validation loss
    bool dry_run = false;     ///< prune: say it only
};

int run_checkpoint_list(const CheckpointArguments& given);
int run_checkpoint_verify(const CheckpointArguments& given);
int run_checkpoint_show(const CheckpointArguments& given);
int run_checkpoint_prune(const CheckpointArguments& given);

}  // namespace vpp
