#pragma once
// What a model prints while it runs: only a trusted file can print, but any may warn (torch.nn.functional does).
#include <cstdint>

namespace vpp {

/// From now on prints and warnings of models go to standard error with control bytes replaced, so that they cannot
/// steer a terminal; standard output is for results. A warning is said once, however many microbatches give it.
/// Calls:  once, before models run; process-wide in LibTorch.
void print_models_plainly();

/// How often models have printed since then. From any thread.
int64_t num_prints();

}  // namespace vpp
