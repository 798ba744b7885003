#include <iostream>

#include <torch/version.h>

#include "app/commands/commands.hpp"
#include "comm/mpi_session.hpp"
#include "comm/nccl.hpp"
#include "device/cards.hpp"

namespace vpp {

int run_version() {
    std::cout << "vpp " << VPP_VERSION << "\nLibTorch " << TORCH_VERSION << "\n" << mpi_library_version() << '\n';
    if (has_cuda_parts()) std::cout << cuda_version() << '\n' << nccl_version() << '\n';
    std::cout << "compiler " << __VERSION__ << std::endl;
    return 0;
}

}  // namespace vpp
