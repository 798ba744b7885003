#pragma once
// What CUDA reads when it starts.
#include <cstdlib>

#include "device/device.hpp"

namespace vpp::test {

/// As a job has it whose ranks send from card to card (app/link_environment.hpp). To be called before CUDA starts.
inline void prepare_cuda_for_links() {
    ::setenv(kKernelLoadingVariable, kKernelLoading, /*replace=*/1);
    ::setenv(kCudaQueuesVariable, kCudaQueues, /*replace=*/1);
}

}  // namespace vpp::test
